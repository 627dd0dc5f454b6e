// Package unknownfields notices fields of pods and nodes that the Go types of this build do not have, because the API
// server is newer, or a manifest is wrong. Decoders drop them; a filter of kube-scheduler may read them. What is found
// is noted on the decoded object, and an engine does not judge what has such a note.
package unknownfields

import (
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Annotation notes the fields on an object in memory. A cluster may hold any text under it: who writes it there says of
// his own pod that it cannot be judged.
const Annotation = "loadline.dev/unknown-fields"

const (
	// mostNamed bounds how many fields are named.
	mostNamed = 8
	// mostTold is how many unknown fields the decoder of JSON tells of. There may be others.
	mostTold = 100
)

// harmlessNames are fields of Kubernetes 1.37 that this build's types of 1.36 do not have and that no filter reads. The
// other new one, bindMountOptions of a volume mount, is read by a filter.
var harmlessNames = regexp.MustCompile(`^spec\.(evictionResponders|podPreemptionPolicy|` +
	`volumes\[\d+\]\..*\.?(user|defaultUser|mode)|` +
	`.*\.httpGet\.protocol|.*\.grpc\.mode)(\.|\[|$)`)

// InJSON decodes JSON into a pod or a node, as an API server does: names in their exact case. It notes what of its spec
// is unknown. The error is that of the decoder.
func InJSON(raw []byte, object metav1.Object) error {
	strict, err := kjson.UnmarshalStrict(raw, object, kjson.DisallowUnknownFields)
	if err != nil {
		return err
	}
	var fields []string
	for _, unknown := range strict {
		if field, ok := unknown.(kjson.FieldError); ok {
			fields = append(fields, field.FieldPath())
		}
	}
	if len(strict) >= mostTold {
		fields = append(fields, "spec.*")
	}
	note(object, fields)
	return nil
}

// note names the fields of a spec among these on an object.
func note(object metav1.Object, fields []string) {
	fields = slices.DeleteFunc(fields, func(field string) bool {
		return !strings.HasPrefix(field, "spec.") || harmlessNames.MatchString(field)
	})
	set(object, fields)
}

func set(object metav1.Object, fields []string) {
	if len(fields) == 0 {
		return
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	annotations := map[string]string{}
	for key, value := range object.GetAnnotations() {
		annotations[key] = value
	}
	annotations[Annotation] = strings.Join(fields[:min(len(fields), mostNamed)], ",")
	object.SetAnnotations(annotations)
}

// Unread adds fields of an object that are known and could not be read, of those that filters read, to what is noted on
// it.
func Unread(object metav1.Object, fields []string) {
	fields = slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		return !strings.HasPrefix(field, "spec") && !strings.HasPrefix(field, "metadata.labels")
	})
	if before := Of(object); before != "" {
		fields = append(fields, strings.Split(before, ",")...)
	}
	set(object, fields)
}

// Of returns the note on an object; empty: there is none.
func Of(object metav1.Object) string { return object.GetAnnotations()[Annotation] }

// judged returns an object of a kind that filters judge.
func judged(object any) (metav1.Object, bool) {
	switch o := object.(type) {
	case *v1.Pod:
		return o, true
	case *v1.Node:
		return o, true
	}
	return nil, false
}
