package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

// tool is one fixture. Its schema is a JSON object; none for an object of any kind.
type tool struct {
	schema string
	run    func(context.Context, *modern.Call, arguments) (modern.Result, error)
}

// arguments are those of every tool.
type arguments struct{ Prompt, Message, Region string }

// Files of one pixel and of no sound.
const (
	image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	audio = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

var (
	textPart  = map[string]string{"type": "text", "text": "This is text content"}
	imagePart = map[string]string{"type": "image", "data": image, "mimeType": "image/png"}
	audioPart = map[string]string{"type": "audio", "data": audio, "mimeType": "audio/wav"}
)

func resourcePart(uri string) map[string]any {
	return map[string]any{"type": "resource", "resource": map[string]string{"uri": uri, "mimeType": "text/plain", "text": "This is an embedded resource"}}
}

// parts is a tool whose result is always the same.
func parts(all ...any) tool {
	return tool{run: func(context.Context, *modern.Call, arguments) (modern.Result, error) {
		return modern.Result{"content": all}, nil
	}}
}

const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
"additionalProperties":false}`

// simpleTools ask nothing of the client.
var simpleTools = map[string]tool{
	"test_simple_text":            parts(map[string]string{"type": "text", "text": "This is a simple text response for testing."}),
	"test_image_content":          parts(imagePart),
	"test_audio_content":          parts(audioPart),
	"test_embedded_resource":      parts(resourcePart("test://embedded-resource")),
	"test_multiple_content_types": parts(textPart, imagePart, resourcePart("test://embedded-in-multiple")),
	"test_streaming_elicitation":  parts(textPart),
	"test_reconnection":           parts(textPart),
	"json_schema_2020_12_tool":    {schema: schema2020, run: parts(textPart).run},
	"test_tool_with_logging":      {run: withLogging},
	"test_logging_tool":           {run: withLogging},
	"test_tool_with_progress":     {run: withProgress},
	"test_error_handling":         {run: failing},
	"test_missing_capability":     {run: needsSampling},
	"test_x_mcp_header": {
		schema: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
		run: func(_ context.Context, _ *modern.Call, a arguments) (modern.Result, error) {
			return modern.Text("region=" + a.Region), nil
		},
	},
}

// pause is as long as the suite asks for between two notifications.
func pause() { time.Sleep(50 * time.Millisecond) }

func withLogging(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		c.Log("info", text)
		pause()
	}
	return modern.Text("Tool with logging executed successfully"), nil
}

func withProgress(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	for _, n := range []float64{0, 50, 100} {
		c.Progress(n, 100, fmt.Sprintf("Completed step %.0f of 100", n))
		pause()
	}
	return modern.Text("Tool with progress executed successfully"), nil
}

func failing(context.Context, *modern.Call, arguments) (modern.Result, error) {
	r := modern.Text("this tool intentionally returns an error for testing")
	r["isError"] = true
	return r, nil
}

func needsSampling(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	return modern.Text("the client declared sampling"), c.Require("sampling")
}

// changes are tools that change a list.
func changes(s *modern.Server) map[string]tool {
	change := func(publish func()) tool {
		return tool{run: func(context.Context, *modern.Call, arguments) (modern.Result, error) {
			publish()
			return modern.Text("published"), nil
		}}
	}
	return map[string]tool{
		"test_trigger_tool_change":   change(s.ToolsChanged),
		"test_trigger_prompt_change": change(s.PromptsChanged),
	}
}

func allTools(s *modern.Server) map[string]tool {
	all := maps.Clone(simpleTools)
	maps.Copy(all, askingTools)
	maps.Copy(all, changes(s))
	return all
}

func callTool(s *modern.Server) modern.Handler {
	all := allTools(s)
	return func(ctx context.Context, c *modern.Call) (modern.Result, error) {
		t, ok := all[c.Params.Name]
		if !ok {
			return nil, modern.InvalidParams("unknown tool %q", c.Params.Name)
		}
		var a arguments
		if len(c.Params.Arguments) > 0 {
			if err := json.Unmarshal(c.Params.Arguments, &a); err != nil {
				return nil, modern.InvalidParams("arguments: %v", err)
			}
		}
		return t.run(ctx, c, a)
	}
}

func listTools(context.Context, *modern.Call) (modern.Result, error) {
	all := allTools(new(modern.Server))
	var list []any
	for _, name := range slices.Sorted(maps.Keys(all)) {
		schema := all[name].schema
		if schema == "" {
			schema = `{"type":"object"}`
		}
		list = append(list, map[string]any{"name": name, "description": "a fixture of the conformance suite", "inputSchema": json.RawMessage(schema)})
	}
	return modern.Result{"tools": list}, nil
}
