package providers

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
	"loadline.dev/shim/autoscaler/cloud"
)

// none is a cloud without node groups.
type none struct{}

var errNone = errors.New("there is no cloud provider: name one by --cloud")

func (none) Refresh(context.Context) error { return nil }

func (none) Groups(context.Context, *externalgrpc.NodeGroupAutoscalingOptions) ([]cloud.Group, error) {
	return nil, nil
}

func (none) IncreaseSize(context.Context, string, int, int) error       { return errNone }
func (none) DecreaseTargetSize(context.Context, string, int, int) error { return errNone }
func (none) DeleteNodes(context.Context, string, []*v1.Node) error      { return errNone }

func (none) Deleting(context.Context, string) (map[string]bool, error) { return nil, nil }

func (none) TemplateNode(context.Context, string) (*v1.Node, error) { return nil, nil }

func (none) NodePrice(context.Context, *v1.Node) (*float64, error) { return nil, nil }
