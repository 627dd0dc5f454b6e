package nodegroup

import "testing"

// FuzzParse: a file is read or refused. Groups that are read have a name each, as the rest of the tree relies on, and
// are the same when they are read again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{ours, ours + sizes, ours + "---\n" + ours, escalator, "node_groups: []", "a: &a [*a]",
		"{", "", "---\n---\n",
		"apiVersion: loadline.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: x}\nspec: {max: 1e30, min: -1}\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, group := range file.Groups {
			name := group.Name()
			if name == "" || names[name] {
				t.Errorf("the name %q is empty, or of two groups", name)
			}
			names[name] = true
		}
		again, err := Parse(data)
		if err != nil || len(again.Groups) != len(file.Groups) {
			t.Errorf("%d groups, then %d and the error %v", len(file.Groups), len(again.Groups), err)
		}
	})
}
