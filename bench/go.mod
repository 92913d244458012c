module github.com/signalbox-mcp/signalbox/bench

go 1.26
