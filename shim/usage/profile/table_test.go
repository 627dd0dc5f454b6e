package profile

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableIsReadAsItWasWritten(t *testing.T) {
	want := []Profile{
		{Workload: Workload{"shop", "Deployment", "web"}, Limits: [Resources]int64{500, 0}, Samples: 9, Days: 7, First: 1_794_400_000,
			Last: 1_795_000_000},
		{Workload: Workload{"shop", "CronJob", "with, comma"}, Samples: 1, Days: 1, First: 0, Last: 5,
			Day: [Resources]Day{allUnknown(), allUnknown()}}}
	for hour := range Hours {
		want[0].Day[CPU][hour], want[0].Day[Memory][hour] = int64(hour), mostAmount-int64(hour)
	}
	want[0].Day[CPU][3] = Unknown
	var text bytes.Buffer
	if err := WriteTable(&text, want); err != nil {
		t.Fatal(err)
	}
	older := regexp.MustCompile(`,[^,]*\n`).ReplaceAllString(text.String(), "\n") // without the column of limits
	got, err := ReadTable(&text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want[0].Limits = [Resources]int64{}
	if got, err = ReadTable(strings.NewReader(older)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTableErrorsNameLineAndColumn(t *testing.T) {
	head := strings.Join(tableHead(), ",") + "\n"
	row := func(start string) string { return head + start + strings.Repeat(",1", Hours+1) + "\n" }
	const times = ",2026-05-01T12:00:00Z,2026-05-02T12:00:00Z"
	for name, c := range map[string]struct{ text, want string }{
		"Empty":     {"", "it is empty"},
		"OtherHead": {"a" + head, "line 1: must be namespace,kind"},
		"TooShort":  {head + "shop,Deployment\n", "wrong number of fields"},
		"NoName":    {row("shop,Deployment,,cpu_milli,1,7" + times), `line 2: name: "" is empty`},
		"BadName":   {row("shop,Deployment,a/b,cpu_milli,1,7" + times), `line 2: name: "a/b" is empty or has a /`},
		"Resource":  {row("shop,Deployment,web,disk,1,7" + times), `line 2: resource: "disk" is neither cpu_milli nor`},
		"Samples":   {row("shop,Deployment,web,cpu_milli,-1,7" + times), `line 2: samples: "-1" is no whole number`},
		"Days":      {row("shop,Deployment,web,cpu_milli,1,x" + times), `line 2: days: "x" is no whole number`},
		"Time":      {row("shop,Deployment,web,cpu_milli,1,7,today,today"), `line 2: first: "today" is no time`},
		"Hour": {strings.TrimSuffix(row("shop,Deployment,web,cpu_milli,1,7"+times), "1,1\n") + "NaN,1\n",
			`line 2: h23: "NaN" is no whole number`},
		"Limit": {strings.TrimSuffix(row("shop,Deployment,web,cpu_milli,1,7"+times), "1\n") + "-1\n",
			`line 2: limit: "-1" is no whole number`},
		"SameRowTwice": {row("shop,Deployment,web,cpu_milli,1,7"+times) + "shop,Deployment,web,cpu_milli,1,7" + times +
			strings.Repeat(",1", Hours+1) + "\n", "line 3: cpu_milli of Deployment shop/web is in line 2 already"},
		"SecondLine": {row("shop,Deployment,web,cpu_milli,1,7"+times) + "shop,Deployment,web,cpu_milli,1,7,no,no" +
			strings.Repeat(",1", Hours+1) + "\n", `line 3: first: "no"`},
	} {
		if _, err := ReadTable(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTableThatASpreadsheetHasSavedIsRead(t *testing.T) {
	want := []Profile{{Workload: Workload{"shop", "Deployment", "web"}, Samples: 9, Days: 7, First: 0, Last: 5,
		Day: [Resources]Day{allUnknown(), allUnknown()}}}
	var text bytes.Buffer
	if err := WriteTable(&text, want); err != nil {
		t.Fatal(err)
	}
	for name, saved := range map[string]string{"Mark": "\ufeff" + text.String(),
		"Semicolons": strings.ReplaceAll(text.String(), ",", ";"), "Tabs": strings.ReplaceAll(text.String(), ",", "\t")} {
		got, err := ReadTable(strings.NewReader(saved))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
