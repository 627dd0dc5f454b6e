package drain

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever may annotate a node can write any mark. What cannot be counts as not stated, or for nothing.
func TestMarksThatCannotBe(t *testing.T) {
	for text, want := range map[string]struct {
		mark  Mark
		ours  bool
		doubt bool
	}{
		`{"term":3,"since":5,"deleting":6}`:             {Mark{Term: 3, Since: 5, Deleting: 6}, true, false},
		`{"term":3,"since":1099511627776}`:              {Mark{Term: 3, Since: 1 << 40}, true, false},
		`{"term":3,"since":1099511627777,"deleting":6}`: {Mark{Term: 3, Deleting: 6}, true, true},
		`{"term":3,"since":5,"deleting":-1}`:            {Mark{Term: 3, Since: 5}, true, true},
		fmt.Sprintf(`{"term":%d}`, int64(MostTerm)):     {Mark{Term: MostTerm}, true, false},
		`{"term":4611686018427387905}`:                  {Mark{}, false, true},
		`{"term":9223372036854775807}`:                  {Mark{}, false, true},
		`{"term":-1}`:                                   {Mark{}, false, true},
		`{"term":1,"since":92233720368547758070}`:       {Mark{}, false, true},
		`{"term":"1"}`:                                  {Mark{}, false, true},
		``:                                              {Mark{}, false, true},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{MarkAnnotation: text}}}
		mark, ours := MarkOf(node)
		if doubt := DoubtOf(node); mark != want.mark || ours != want.ours || (doubt != "") != want.doubt {
			t.Errorf("%s: %+v, ours: %v, %q", text, mark, ours, doubt)
		}
	}
	if doubt := DoubtOf(&v1.Node{}); doubt != "" {
		t.Errorf("without a mark: %q", doubt)
	}
}
