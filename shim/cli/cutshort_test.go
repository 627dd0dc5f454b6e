package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"loadline.dev/shim/api/loadlinev1"
)

// Each command says in its table and as data that its answer was cut short, and by what. An answer that was not says
// nothing of it.
func TestAnswersSayThatTheyWereCutShort(t *testing.T) {
	slackOf := func(by string) *slackPlan {
		p := &slackPlan{rate: "10%", PlanSlackResponse: &loadlinev1.PlanSlackResponse{CutShort: by,
			Classes: []*loadlinev1.ClassSlack{{Name: "a"}}, ClassesTotal: 1,
			Errors: []*loadlinev1.SlackWishError{{Source: "Deployment shop/web", Text: "no number"}}, ErrorsTotal: 1}}
		if by != "" {
			p.ClassesTotal, p.ErrorsTotal = 1200, 300
		}
		return p
	}
	drainOf := func(by string) *drainPlan {
		return &drainPlan{PlanDrainResponse: &loadlinev1.PlanDrainResponse{Status: "NoUnneeded", CutShortBy: by},
			options: &loadlinev1.DrainOptions{}}
	}
	planOf := func(by string) *loopPlan {
		l := &loopPlan{PlanLoopResponse: &loadlinev1.PlanLoopResponse{
			ScaleUp:   &loadlinev1.PlanScaleUpResponse{CutShortBy: by, CutShort: true},
			ScaleDown: drainOf("").PlanDrainResponse}, slack: slackOf(""), drain: drainOf("")}
		return l
	}
	const usedUp = ": the memory that the question may take was used up."
	for _, c := range []struct {
		name       string
		cut, whole answer
		text       []string
		data       []string
	}{
		{"drain", drainOf("memory").forms(), drainOf("").forms(), []string{"Not all nodes were looked at" + usedUp},
			[]string{`"cutShortBy":"memory"`}},
		{"slack", slackOf("memory").forms(), slackOf("").forms(),
			[]string{"Some placeholders may have no node, and no node is asked for them" + usedUp,
				"The first 1 of 1200 classes are told."},
			[]string{`"cutShortBy":"memory"`, `"classesTotal":1200`, `"errorsTotal":300`}},
		{"plan", planOf("memory").forms(), planOf("").forms(), []string{"More might grow, or at less cost" + usedUp},
			[]string{`"growthCutShortBy":"memory"`}},
	} {
		for _, cut := range []bool{true, false} {
			form := c.whole
			if cut {
				form = c.cut
			}
			var table bytes.Buffer
			if err := (&outputFlag{form: formTable}).write(&table, form); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(form.data)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.text {
				if strings.Contains(table.String(), want) != cut {
					t.Errorf("%s, cut short %v: %q in\n%s", c.name, cut, want, table.String())
				}
			}
			for _, want := range c.data {
				if strings.Contains(string(data), want) != cut {
					t.Errorf("%s, cut short %v: %s in %s", c.name, cut, want, data)
				}
			}
			if c.name == "slack" &&
				!strings.Contains(string(data), `"errors":[{"source":"Deployment shop/web","text":"no number"}]`) {
				t.Errorf("the wishes that cannot be met are not in %s", data)
			}
		}
	}
	if got, want := strings.Join(slackOf("work").wrong(), "\n"), "Deployment shop/web: no number\n"+
		"299 more wishes for copies cannot be met"; got != want {
		t.Errorf("got warnings %q, want %q", got, want)
	}
}
