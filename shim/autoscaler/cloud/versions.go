package cloud

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"loadline.dev/shim/api/externalgrpc"
)

// statedTime is a time of options in both of its forms.
type statedTime struct {
	now **durationpb.Duration
	old **externalgrpc.OldDuration
}

func timesOf(o *externalgrpc.NodeGroupAutoscalingOptions) [3]statedTime {
	return [3]statedTime{
		{&o.ScaleDownUnneededDuration, &o.OldScaleDownUnneededTime},
		{&o.ScaleDownUnreadyDuration, &o.OldScaleDownUnreadyTime},
		{&o.MaxNodeProvisionDuration, &o.OldMaxNodeProvisionTime},
	}
}

// readForms returns the options of an answer in both forms. A server that knows the old form alone may send the newer
// fields of the request back as they were: then the old ones hold.
func readForms(answer, sent *externalgrpc.NodeGroupAutoscalingOptions) *externalgrpc.NodeGroupAutoscalingOptions {
	if answer == nil || sent == nil {
		return InBothForms(answer)
	}
	read := proto.CloneOf(answer)
	asked := timesOf(sent)
	for i, of := range timesOf(read) {
		if *of.old != nil && proto.Equal(*of.now, *asked[i].now) && !proto.Equal(*of.old, *asked[i].old) {
			*of.now = nil
		}
	}
	return InBothForms(read)
}

// InBothForms returns options whose times are stated in the form of Cluster Autoscaler since 1.35 and in the old one,
// whichever of them `options` has; where they differ, the newer one holds. Servers and clients of earlier releases know
// the old one alone, and the example server of that time ends if it is missing.
func InBothForms(options *externalgrpc.NodeGroupAutoscalingOptions) *externalgrpc.NodeGroupAutoscalingOptions {
	if options == nil {
		return nil
	}
	both := proto.CloneOf(options)
	for _, of := range timesOf(both) {
		if *of.now != nil {
			*of.old = &externalgrpc.OldDuration{Duration: int64((*of.now).AsDuration())}
		} else if *of.old != nil {
			*of.now = durationpb.New(time.Duration((*of.old).GetDuration()))
		}
	}
	return both
}
