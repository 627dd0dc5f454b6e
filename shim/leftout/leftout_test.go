package leftout

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"loadline.dev/shim/api/loadlinev1"
)

// Each object counts once, texts of users are UTF-8, printable and bounded, and what the engine counts without a name
// counts as well.
func TestList(t *testing.T) {
	var l List
	if l.Line(3) != "" || l.Total() != 0 || len(l.Objects()) != 0 {
		t.Errorf("an empty list says %q, %d, %v", l.Line(3), l.Total(), l.Objects())
	}
	l.Add(New("Pod", "shop", "web", "first"), New("Pod", "shop", "web", "second"))
	if got, want := l.Line(3), "1 object was left out: Pod shop/web: first"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	l.AddAnswer(&loadlinev1.PlanLoopResponse{LeftOutTotal: 5, LeftOut: []*loadlinev1.LeftOut{
		{Kind: "Pod", Namespace: "shop", Name: "web", Reason: "third"},
		{Kind: "Node", Name: "n1", Reason: "negative"}}})
	if got, want := l.Line(1), "5 objects were left out: Node n1: negative; 4 more"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if kinds := l.Kinds(); kinds["Pod"] != 1 || kinds["Node"] != 1 || kinds["other"] != 3 || kinds["DaemonSet"] != 0 ||
		len(kinds) != 17 {
		t.Errorf("kinds %v", kinds)
	}
}

func TestTextsOfUsersAreBounded(t *testing.T) {
	o := New(strings.Repeat("K", 1<<20), "a\xffb", "\x1b[31m\n"+strings.Repeat("ä", 1000), strings.Repeat("x", 2000))
	if len(o.Kind) != 253 || o.Namespace != "a\uFFFDb" || len(o.Name) > 253 ||
		!strings.HasPrefix(o.Name, "\uFFFD[31m\uFFFDä") || len(o.Reason) != 512 {
		t.Errorf("%q", o)
	}
	if !utf8.ValidString(o.Name) || !strings.HasSuffix(o.Name, "ä...") {
		t.Errorf("%q", o.Name)
	}
}

// However many objects are left out, a bounded number is named, the same ones in whatever order they came, and kinds
// that users make up are one.
func TestManyObjects(t *testing.T) {
	var l List
	for i := range 10_000 {
		l.Add(New(fmt.Sprint("Kind", i%7), "shop", fmt.Sprint("pod-", 9999-i), "too large"))
	}
	if objects := l.Objects(); len(objects) != MostTold || objects[0].Name != "pod-10" || l.Total() != 10_000 ||
		l.Kinds()["other"] != 10_000 {
		t.Errorf("%d objects, first %v, total %d, kinds %v", len(objects), objects[0], l.Total(), l.Kinds())
	}
}
