package cloud

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"loadline.dev/shim/api/externalgrpc"
)

// readForms returns the options of an answer in both forms. A server that knows the old form alone may send the newer
// fields of the request back as they were: then the old ones hold.
func readForms(answer, sent *externalgrpc.NodeGroupAutoscalingOptions) *externalgrpc.NodeGroupAutoscalingOptions {
	if answer == nil {
		return nil
	}
	if sent == nil {
		sent = &externalgrpc.NodeGroupAutoscalingOptions{}
	}
	read := proto.CloneOf(answer)
	for _, f := range []struct {
		now, sentNow **durationpb.Duration
		old, sentOld *externalgrpc.OldDuration
	}{
		{&read.ScaleDownUnneededDuration, &sent.ScaleDownUnneededDuration, read.OldScaleDownUnneededTime,
			sent.OldScaleDownUnneededTime},
		{&read.ScaleDownUnreadyDuration, &sent.ScaleDownUnreadyDuration, read.OldScaleDownUnreadyTime,
			sent.OldScaleDownUnreadyTime},
		{&read.MaxNodeProvisionDuration, &sent.MaxNodeProvisionDuration, read.OldMaxNodeProvisionTime,
			sent.OldMaxNodeProvisionTime},
	} {
		if f.old != nil && proto.Equal(*f.now, *f.sentNow) && !proto.Equal(f.old, f.sentOld) {
			*f.now = nil
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
	for _, of := range []struct {
		now **durationpb.Duration
		old **externalgrpc.OldDuration
	}{
		{&both.ScaleDownUnneededDuration, &both.OldScaleDownUnneededTime},
		{&both.ScaleDownUnreadyDuration, &both.OldScaleDownUnreadyTime},
		{&both.MaxNodeProvisionDuration, &both.OldMaxNodeProvisionTime},
	} {
		if *of.now != nil {
			*of.old = &externalgrpc.OldDuration{Duration: int64((*of.now).AsDuration())}
		} else if *of.old != nil {
			*of.now = durationpb.New(time.Duration((*of.old).GetDuration()))
		}
	}
	return both
}
