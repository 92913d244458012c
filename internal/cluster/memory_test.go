package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/cluster/clustertest"
)

func TestMemory(t *testing.T) {
	clustertest.Run(t, func(t *testing.T, part clustertest.Part) {
		synctest.Test(t, func(t *testing.T) { part(t, new(cluster.Memory), time.Sleep) })
	})
}
