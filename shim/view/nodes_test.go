package view

import (
	"google.golang.org/grpc"
	fwk "k8s.io/kube-scheduler/framework"

	"loadline.dev/shim/internal/nodereader"
)

// cycles and oneCycle are those of kube-scheduler's NodeInfos.
type (
	cycles   = Cycles[fwk.NodeInfo, nodereader.Reader]
	oneCycle = Cycle[fwk.NodeInfo]
)

func newCycles(conn grpc.ClientConnInterface, name string, events Events) *cycles {
	return NewCycles[fwk.NodeInfo, nodereader.Reader](conn, name, events)
}
