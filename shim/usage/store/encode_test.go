package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline.dev/shim/usage/profile"
)

var testHead = Head{Collected: 1_795_000_000, CarriedUntil: 5, Days: 7, Percent: 90}

// flat returns a profile that uses an amount in each hour.
func flat(namespace, name string, samples, amount int64) profile.Profile {
	p := profile.Profile{Workload: profile.Workload{Namespace: namespace, Kind: "Deployment", Name: name},
		Limits: [profile.Resources]int64{4_000, 1 << 32}, Samples: samples, Days: 7, First: 1_794_400_000,
		Last: 1_795_000_000}
	for of := range p.Day {
		for hour := range p.Day[of] {
			p.Day[of][hour] = amount
		}
	}
	return p
}

func TestWhatIsLost(t *testing.T) {
	tests := []struct{ amount, peak, want int64 }{
		{0, 0, 0}, {0, 1000, 0}, {1000, 1000, 1000}, {1, 1, 1},
		{1, 1000, 3},     // one step of 1000/254 = 3.94
		{500, 1000, 500}, // 127 steps exactly
		{501, 1000, 503}, // 127.254 steps: 128, which are 503.94
		{253, 254, 253}, {1 << 61, 1 << 62, 1 << 61}, {1 << 62, 1 << 62, 1 << 62}, {1, 1 << 62, (1 << 62) / 254},
		{profile.Unknown, 1000, profile.Unknown}, {profile.Unknown, 0, profile.Unknown},
	}
	for _, test := range tests {
		if got := amountOf(shareOf(test.amount, test.peak), test.peak); got != test.want {
			t.Errorf("%d of a peak of %d is read as %d, want %d", test.amount, test.peak, got, test.want)
		}
	}
}

func TestReadsWhatWasWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var want []profile.Profile
	for i := range 300 {
		p := flat("shop", fmt.Sprintf("w%03d", i), random.Int64N(1<<40), 0)
		p.Limits = [profile.Resources]int64{random.Int64N(1 << 40), int64(i) % 2 << 62}
		for of := range p.Day {
			for hour := range p.Day[of] {
				p.Day[of][hour] = random.Int64N(1<<random.IntN(62)) - 1
			}
		}
		want = append(want, p)
	}
	shards, leftOut := Encode(&testHead, want)
	if len(shards) != 1 || leftOut != 0 {
		t.Fatalf("%d shards, %d left out", len(shards), leftOut)
	}
	head, got, err := Decode(shards[0])
	if err != nil || head != testHead || len(got) != len(want) {
		t.Fatalf("%+v, %d profiles, %v", head, len(got), err)
	}
	for i := range got {
		for of := range got[i].Day {
			peak, _ := want[i].Day[of].Peak()
			for hour, amount := range got[i].Day[of] {
				if was := want[i].Day[of][hour]; amount < was || amount > was+max(peak, 0)/254 || was < 0 && amount != was {
					t.Fatalf("%d of a peak of %d is read as %d", was, peak, amount)
				}
			}
			if again, _ := got[i].Day[of].Peak(); again != peak {
				t.Fatalf("a peak of %d is read as %d", peak, again)
			}
		}
		got[i].Day = want[i].Day
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again, _ := Encode(&testHead, want); !bytes.Equal(again[0], shards[0]) {
		t.Error("the same profiles, other bytes")
	}
}

func TestTenThousandWorkloadsFit(t *testing.T) {
	tests := []struct {
		name      string
		workloads int
		namespace string
		text      string
		fits      bool
	}{
		{"OrdinaryNames", 10_000, "some-namespace", strings.Repeat("n", 30), true},
		{"TheLongestNames", 10_000, strings.Repeat("s", 63), strings.Repeat("n", 247), true},
		{"FourTimesAsMany", 40_000, "some-namespace", strings.Repeat("n", 30), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var profiles []profile.Profile
			for i := range test.workloads {
				profiles = append(profiles, flat(test.namespace, fmt.Sprintf("%s%06d", test.text, i), int64(i), 1<<40))
			}
			shards, leftOut := Encode(&testHead, profiles)
			total, read := 0, 0
			for _, shard := range shards {
				_, got, err := Decode(shard)
				if err != nil || len(shard) > MostShard {
					t.Fatalf("%d bytes: %v", len(shard), err)
				}
				for _, p := range got {
					if p.Samples < int64(leftOut) {
						t.Fatalf("a profile of %d samples is kept, %d are left out", p.Samples, leftOut)
					}
				}
				total, read = total+len(shard), read+len(got)
			}
			t.Logf("%d workloads in %d shards of %d bytes in all, %d left out", read, len(shards), total, leftOut)
			if len(shards) > Shards || total > 4<<20 || (leftOut == 0) != test.fits || read+leftOut != test.workloads {
				t.Errorf("%d shards, %d bytes, %d read, %d left out", len(shards), total, read, leftOut)
			}
		})
	}
}

func TestBrokenShards(t *testing.T) {
	good, _ := Encode(&testHead, []profile.Profile{flat("a", "x", 1, 2), flat("b", "x", 1, 2)})
	content := good[0][:len(good[0])-sha256.Size]
	unordered := encodeHead(&testHead, 2)
	for range 2 {
		p := flat("a", "x", 1, 2)
		unordered = encodeProfile(unordered, &p)
	}
	odd := flat("a", "\xff", 1, 2)
	slash, empty := flat("a", "x/y", 1, 2), flat("", "x", 1, 2)
	long := flat("a", strings.Repeat("x", 254), 1, 2)
	tests := []struct {
		name  string
		shard []byte
		want  string
	}{
		{"Nothing", nil, "does not begin"},
		{"AnotherVersion", seal([]byte("loadline usage 1\n" + strings.Repeat("x", 50))), "does not begin"},
		{"TooLarge", make([]byte, MostShard+1), "at most 524288"},
		{"OneBitFlipped", append([]byte(magic+"\x81"), good[0][len(magic)+1:]...), "digest"},
		{"CutShort", seal(bytes.Clone(content[:len(content)-1])), "cut short"},
		{"MoreFollows", seal(append(bytes.Clone(content), 0)), "follow the last"},
		{"Unordered", seal(unordered), "Deployment a/x is not in order"},
		{"ABombOfProfiles", seal(encodeHead(&testHead, 1<<40)), "at most 8456"},
		{"AHugeNumber", seal([]byte(magic + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), "2^62"},
		{"NotUTF8", seal(encodeProfile(encodeHead(&testHead, 1), &odd)), `a name is "\xff"`},
		{"ASlash", seal(encodeProfile(encodeHead(&testHead, 1), &slash)), `a name is "x/y"`},
		{"NoNamespace", seal(encodeProfile(encodeHead(&testHead, 1), &empty)), `a namespace is ""`},
		{"ALongName", seal(encodeProfile(encodeHead(&testHead, 1), &long)), "254 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, got, err := Decode(test.shard)
			if err == nil || !strings.Contains(err.Error(), test.want) || got != nil {
				t.Errorf("%d profiles, %v; want %q", len(got), err, test.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	good, _ := Encode(&testHead, []profile.Profile{flat("a", "x", 1, 2), flat("b", "x", 1, 2)})
	f.Add(good[0][:len(good[0])-sha256.Size])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, content []byte) {
		_, got, err := Decode(seal(content))
		if err != nil && got != nil {
			t.Error("both profiles and an error")
		}
		for _, p := range got {
			for of := range p.Day {
				for _, amount := range p.Day[of] {
					if amount < profile.Unknown || amount > 1<<62 {
						t.Errorf("%v has %d", p.Workload, amount)
					}
				}
			}
		}
	})
}
