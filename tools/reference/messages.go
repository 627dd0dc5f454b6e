package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// messages describes the services of proto/loadline/v1 and their messages, by their comments.
func messages(top string) (string, error) {
	files, err := filepath.Glob(filepath.Join(top, "proto", "loadline", "v1", "*.proto"))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "reference-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	set := filepath.Join(dir, "set")
	args := append([]string{"--proto_path=" + filepath.Join(top, "proto"), "--include_source_info",
		"--descriptor_set_out=" + set}, files...)
	if out, err := exec.Command("protoc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("protoc: %w: %s", err, out)
	}
	content, err := os.ReadFile(set)
	if err != nil {
		return "", err
	}
	var all descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(content, &all); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(notice + "# Messages\n\nThe engine is asked by gRPC, or by the same messages through its C ABI " +
		"(`plugin/abi/loadline.h`). Amounts, units and ranges are as the comments say.\n")
	for _, file := range all.File {
		describeFile(&out, file)
	}
	return out.String(), nil
}

// source finds comments by the path of what they are about: numbers of fields of the descriptor's own message.
type source map[string]string

func sourceOf(file *descriptorpb.FileDescriptorProto) source {
	s := source{}
	for _, location := range file.GetSourceCodeInfo().GetLocation() {
		text := location.GetLeadingComments() + " " + location.GetTrailingComments()
		s[fmt.Sprint(location.Path)] = strings.Join(strings.Fields(text), " ")
	}
	return s
}

func (s source) of(path ...int32) string { return s[fmt.Sprint(path)] }

// Numbers of fields in descriptor.proto.
const (
	ofMessages, ofEnums, ofServices  = 4, 5, 6
	ofFields, ofNested, ofNestedEnum = 2, 3, 4
	ofMethods, ofValues              = 2, 2
)

func describeFile(out *strings.Builder, file *descriptorpb.FileDescriptorProto) {
	s := sourceOf(file)
	fmt.Fprintf(out, "\n## %s\n", strings.TrimPrefix(file.GetName(), "loadline/v1/"))
	for i, service := range file.Service {
		fmt.Fprintf(out, "\n### service %s\n\n%s\n\n| Question | Answer | |\n|---|---|---|\n", service.GetName(),
			s.of(ofServices, int32(i)))
		for j, method := range service.Method {
			fmt.Fprintf(out, "| `%s(%s)` | `%s` | %s |\n", method.GetName(), short(method.GetInputType()),
				short(method.GetOutputType()), cell(s.of(ofServices, int32(i), ofMethods, int32(j))))
		}
	}
	for i, message := range file.MessageType {
		describeMessage(out, s, message, message.GetName(), []int32{ofMessages, int32(i)})
	}
	for i, enum := range file.EnumType {
		describeEnum(out, s, enum, enum.GetName(), []int32{ofEnums, int32(i)})
	}
}

func describeMessage(out *strings.Builder, s source, m *descriptorpb.DescriptorProto, name string, path []int32) {
	if m.GetOptions().GetMapEntry() {
		return
	}
	fmt.Fprintf(out, "\n### %s\n\n%s\n", name, s.of(path...))
	if len(m.Field) > 0 {
		out.WriteString("\n| Field | Type | |\n|---|---|---|\n")
	}
	for i, f := range m.Field {
		kind := short(f.GetTypeName())
		if kind == "" {
			kind = strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
		}
		if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED {
			kind = "repeated " + kind
		}
		fmt.Fprintf(out, "| `%s` = %d | %s | %s |\n", f.GetName(), f.GetNumber(), kind,
			cell(s.of(append(path[:len(path):len(path)], ofFields, int32(i))...)))
	}
	for i, nested := range m.NestedType {
		describeMessage(out, s, nested, name+"."+nested.GetName(), append(path[:len(path):len(path)], ofNested, int32(i)))
	}
	for i, enum := range m.EnumType {
		describeEnum(out, s, enum, name+"."+enum.GetName(), append(path[:len(path):len(path)], ofNestedEnum, int32(i)))
	}
}

func describeEnum(out *strings.Builder, s source, e *descriptorpb.EnumDescriptorProto, name string, path []int32) {
	fmt.Fprintf(out, "\n### enum %s\n\n%s\n\n| Value | |\n|---|---|\n", name, s.of(path...))
	for i, v := range e.Value {
		fmt.Fprintf(out, "| `%s` = %d | %s |\n", v.GetName(), v.GetNumber(),
			cell(s.of(append(path[:len(path):len(path)], ofValues, int32(i))...)))
	}
}

// short is the name of a type without its package.
func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, ".loadline.v1."), ".loadline.")
}
