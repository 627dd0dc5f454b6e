package scenario

import (
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"loadline.dev/shim/api/loadlinev1"
)

// Every field of a scenario is named by the example or by the page of faults.
func TestEveryFieldIsDocumented(t *testing.T) {
	documents := ""
	for _, file := range []string{"../../docs/scenario.yaml", "../../docs/simulator-faults.md"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents += string(content)
	}
	fields := 0
	seen := map[protoreflect.FullName]bool{}
	var walk func(message protoreflect.MessageDescriptor)
	walk = func(message protoreflect.MessageDescriptor) {
		if seen[message.FullName()] {
			return
		}
		seen[message.FullName()] = true
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			fields++
			// The name is a key of the example, also one that is a comment, or code of the page.
			name := regexp.QuoteMeta(field.JSONName())
			if !regexp.MustCompile(`(?m)(^ *(# *)?(- )?|[{,] *)` + name + ":|`" + name + "`").MatchString(documents) {
				t.Errorf("%s: no document names %s", message.Name(), field.JSONName())
			}
			if field.Message() != nil {
				walk(field.Message())
			}
		}
	}
	walk((&loadlinev1.Scenario{}).ProtoReflect().Descriptor())
	if fields < 100 {
		t.Errorf("only %d fields were looked for", fields)
	}
}
