package unknownfields

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// message is what is known of one type of protobuf message.
type message struct {
	fields map[protowire.Number]field
}

// field is one known field.
type field struct {
	name string
	of   *message // nil: what is in it is not looked at
}

// Fields of Kubernetes 1.37 that mean nothing to filters, by the type of 1.36 that lacks them; see harmlessNames.
var harmlessNumbers = map[string][]protowire.Number{
	"ClusterTrustBundleProjection": {6}, "ConfigMapVolumeSource": {5}, "DownwardAPIVolumeFile": {5},
	"DownwardAPIVolumeSource": {3}, "EmptyDirVolumeSource": {3}, "GRPCAction": {3}, "HTTPGetAction": {6},
	"KeyToPath": {4}, "NodeSpec": {8}, "PodCertificateProjection": {8}, "PodSpec": {44}, "ProjectedVolumeSource": {3},
	"SecretVolumeSource": {5}, "ServiceAccountTokenProjection": {4},
}

// newNames are the names of fields of 1.37 that filters read.
var newNames = map[string]map[protowire.Number]string{"VolumeMount": {8: "bindMountOptions"}}

var (
	podSpec  = messageOf(reflect.TypeFor[v1.PodSpec](), map[reflect.Type]*message{})
	nodeSpec = messageOf(reflect.TypeFor[v1.NodeSpec](), map[reflect.Type]*message{})
)

// messageOf reads the tags of a Go type and of what it holds.
func messageOf(of reflect.Type, known map[reflect.Type]*message) *message {
	if m, ok := known[of]; ok {
		return m
	}
	m := &message{fields: map[protowire.Number]field{}}
	known[of] = m
	for i := range of.NumField() {
		number, name, ok := parseTag(of.Field(i).Tag.Get("protobuf"))
		if !ok {
			continue
		}
		m.fields[number] = field{name, held(of.Field(i).Type, known)}
	}
	for _, number := range harmlessNumbers[of.Name()] {
		if _, ok := m.fields[number]; !ok {
			m.fields[number] = field{}
		}
	}
	return m
}

// held returns the message in a field, if it is one of Kubernetes' own with the fields that its tags say.
func held(of reflect.Type, known map[reflect.Type]*message) *message {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	selector := of == reflect.TypeFor[metav1.LabelSelector]() || of == reflect.TypeFor[metav1.LabelSelectorRequirement]()
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1.Pod]().PkgPath() && !selector {
		return nil
	}
	return messageOf(of, known)
}

// parseTag reads a tag such as "bytes,2,opt,name=volumeSource".
func parseTag(tag string) (number protowire.Number, name string, ok bool) {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0, "", false
	}
	n, err := strconv.Atoi(parts[1])
	for _, part := range parts {
		if text, has := strings.CutPrefix(part, "name="); has {
			name = text
		}
	}
	return protowire.Number(n), name, err == nil
}

// look adds the unknown fields of a message that lies at `path`. What is damaged is for the decoder to refuse.
func (m *message) look(raw []byte, of, path string, found *[]string) {
	for len(raw) > 0 && len(*found) <= mostNamed {
		number, kind, size := protowire.ConsumeTag(raw)
		if size < 0 {
			return
		}
		raw = raw[size:]
		known, ok := m.fields[number]
		if !ok {
			*found = append(*found, path+"."+m.nameOf(of, number))
		}
		size = protowire.ConsumeFieldValue(number, kind, raw)
		if size < 0 {
			return
		}
		if known.of != nil && kind == protowire.BytesType {
			if content, n := protowire.ConsumeBytes(raw); n >= 0 {
				known.of.look(content, known.name, path+"."+known.name, found)
			}
		}
		raw = raw[size:]
	}
}

func (m *message) nameOf(of string, number protowire.Number) string {
	if of == "volumeMounts" {
		if name, ok := newNames["VolumeMount"][number]; ok {
			return name
		}
	}
	return "field " + strconv.Itoa(int(number))
}

// inWire notes the unknown fields in the spec of a pod or a node, as its message has it.
func inWire(raw []byte, object metav1.Object) {
	spec := podSpec
	if _, ok := object.(*v1.Node); ok {
		spec = nodeSpec
	}
	var found []string
	eachField(raw, 2, func(content []byte) { spec.look(content, "spec", "spec", &found) })
	note(object, found)
}

// eachField calls handle with the content of each field of that number.
func eachField(raw []byte, wanted protowire.Number, handle func([]byte)) {
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeTag(raw)
		if size < 0 {
			return
		}
		raw = raw[size:]
		size = protowire.ConsumeFieldValue(number, kind, raw)
		if size < 0 {
			return
		}
		if number == wanted && kind == protowire.BytesType {
			if content, n := protowire.ConsumeBytes(raw); n >= 0 {
				handle(content)
			}
		}
		raw = raw[size:]
	}
}

// envelope is what API servers write before protobuf.
var envelope = []byte("k8s\x00")

// inEnvelope notes the unknown fields of an object, or of the items of a list, that was decoded from these bytes.
func inEnvelope(data []byte, object any) {
	content, ok := bytes.CutPrefix(data, envelope)
	if !ok {
		return
	}
	eachField(content, 2, func(raw []byte) {
		switch list := object.(type) {
		case *v1.PodList:
			next := 0
			eachField(raw, 2, func(item []byte) {
				if next < len(list.Items) {
					inWire(item, &list.Items[next])
				}
				next++
			})
		case *v1.NodeList:
			next := 0
			eachField(raw, 2, func(item []byte) {
				if next < len(list.Items) {
					inWire(item, &list.Items[next])
				}
				next++
			})
		default:
			if one, ok := judged(object); ok {
				inWire(raw, one)
			}
		}
	})
}
