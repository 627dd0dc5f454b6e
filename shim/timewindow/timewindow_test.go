package timewindow

import (
	"strings"
	"testing"
	"time"
)

func TestWindowsHoldInTheirTimeZone(t *testing.T) {
	for _, c := range []struct{ window, now, from, until string }{
		// Berlin is two hours ahead of UTC in summer, one in winter.
		{"0 22 * * * 6h Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-01T20:00:00Z", "2026-07-02T02:00:00Z"},
		{"0 22 * * * 6h Europe/Berlin", "2026-12-01T12:00:00Z", "2026-12-01T21:00:00Z", "2026-12-02T03:00:00Z"},
		// Within one, to its last second.
		{"0 22 * * * 6h", "2026-07-02T03:59:59Z", "2026-07-01T22:00:00Z", "2026-07-02T04:00:00Z"},
		{"0 22 * * * 6h", "2026-07-02T04:00:00Z", "2026-07-02T22:00:00Z", "2026-07-03T04:00:00Z"},
		// A Saturday: the next working day.
		{"30 9 * * 1-5 90m UTC", "2026-11-28T00:00:00Z", "2026-11-30T09:30:00Z", "2026-11-30T11:00:00Z"},
	} {
		window, err := Parse(c.window)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		from, until, ok := window.At(now)
		if !ok || from.UTC().Format(time.RFC3339) != c.from || until.UTC().Format(time.RFC3339) != c.until {
			t.Errorf("%s at %s: from %v until %v, %v; want %s until %s", c.window, c.now, from.UTC(), until.UTC(), ok, c.from,
				c.until)
		}
	}
}

func TestAWindowThatNeverComes(t *testing.T) {
	window, err := Parse("0 0 30 2 * 1h")
	if err != nil {
		t.Fatal(err)
	}
	if from, _, ok := window.At(time.Unix(1_800_000_000, 0)); ok {
		t.Errorf("30 February comes on %v", from)
	}
}

// Summer time ends in Berlin in the night to 29 October 2023.
func TestWindowsOfASpan(t *testing.T) {
	window, err := Parse("0 22 * * 0,6 6h Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// It begins within Friday's, which is none, and ends within Sunday's.
	from, until := time.Date(2023, 10, 28, 0, 0, 0, 0, time.UTC), time.Date(2023, 10, 29, 21, 0, 1, 0, time.UTC)
	windows := window.Between(from, until)
	var got []string
	for _, w := range windows {
		got = append(got, time.Unix(w.GetFromS(), 0).UTC().Format("2T15:04")+" "+
			time.Unix(w.GetUntilS(), 0).UTC().Format("2T15:04"))
	}
	if want := "28T20:00 29T02:00,29T21:00 30T03:00"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	// One that has begun before the span holds at its start.
	inside := window.Between(from.Add(21*time.Hour), from.Add(22*time.Hour))
	if len(inside) != 1 || inside[0].GetFromS() != windows[0].GetFromS() {
		t.Errorf("within the first window: %v", inside)
	}
	if none := window.Between(from, from); len(none) != 0 {
		t.Errorf("in no time: %v", none)
	}
}
