package cloud

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"loadline.dev/shim/api/externalgrpc"
)

// Deleter deletes nodes of one group. An error is one for all of them; OutcomeUnknown says after which of them nobody
// knows whether they go.
type Deleter interface {
	// DeleteNodes has machines of a group deleted, and makes its target that much smaller. It deletes none where the
	// group would get smaller than its minimum. A machine without a node is named by the id of its instance, as name and
	// as provider id, and has the annotation WithoutNode: a provider that knows of a node of it deletes nothing. A
	// machine that is gone, or is being deleted, is no error.
	DeleteNodes(ctx context.Context, group string, nodes []*v1.Node) error
	// Deleting returns the machines of a group that are being deleted, by provider id, as the cloud lists them now.
	Deleting(ctx context.Context, group string) (map[string]bool, error)
}

// WithoutNode is the annotation by which Cluster Autoscaler says why a node that it makes up for a machine is none.
const WithoutNode = "k8s.io/cluster-autoscaler/fake-node-reason"

// Provider makes and deletes machines in groups. It is all that the loop asks of a cloud; Client fulfils it for servers
// of the externalgrpc protocol. All methods are safe for concurrent use. An error that carries a gRPC status says by
// its code whether something may have happened (OutcomeUnknown); any other error says that nothing has.
type Provider interface {
	Deleter
	// Refresh looks at the cloud again. It is called at the begin of each loop, and may be
	// called after a change.
	Refresh(ctx context.Context) error
	// Groups returns all groups by id, with bounds, target size, machines and options. A group of which not all is known
	// has a Problem and is left as it is; an error leaves all of them. `defaults` are the options of a group that states
	// none. The machines are Instances: an id, which is the provider id of its node once there is one; a state (CREATING,
	// RUNNING, DELETING); and, if it cannot be created, an error, with class 1 where the cloud has no such machines left.
	// The target counts machines that were asked for, those with an error included, and none that is being deleted.
	Groups(ctx context.Context, defaults *externalgrpc.NodeGroupAutoscalingOptions) ([]Group, error)
	// IncreaseSize asks for `delta` more machines in a group whose target is `from`; ErrChanged where it is not.
	IncreaseSize(ctx context.Context, group string, from, delta int) error
	// DecreaseTargetSize takes back the request for `delta` machines that the cloud has not begun to make. It deletes no
	// machine that has an instance. ErrChanged where the target is not `from`.
	DecreaseTargetSize(ctx context.Context, group string, from, delta int) error
	// TemplateNode returns a node as the group would make it; nil: it is not known.
	TemplateNode(ctx context.Context, group string) (*v1.Node, error)
	// NodePrice returns what a node costs for an hour in US dollars; nil: it is not known, and price lists are asked.
	NodePrice(ctx context.Context, node *v1.Node) (*float64, error)
}

// ErrChanged says that somebody else has changed the size of a group since it was listed.
var ErrChanged = errors.New("its target size has changed meanwhile")

// OutcomeUnknown says whether a cloud that answered with an error may have done what it was asked to, or a part of it.
// Only what was never sent, and codes by which a server refuses before it begins, say that nothing has happened: a
// provider that ends a batch with an error of its own (Unknown, Internal, Aborted) may have deleted the first nodes.
func OutcomeUnknown(err error) bool {
	var answer interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.GRPCStatus().Code() {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.ResourceExhausted:
		return false
	}
	return true
}

// Uncertain returns an error after which nobody knows how much of a request was carried out.
func Uncertain(err error) error { return status.Error(codes.Unknown, err.Error()) }
