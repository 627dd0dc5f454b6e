package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/text/encoding/unicode"

	"loadline.dev/shim/usage/profile"
)

const fileHead = "time,namespace,kind,name,cpu_milli,memory_bytes\n"

// fileOf returns a file of this content; the clock is at the end of the hour of tests.
func fileOf(t *testing.T, name, content string) File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return File{Path: path, Now: time.Unix(testTo, 0)}
}

// collect returns the samples of the hour of tests.
func (f File) collect(t *testing.T) (taken, Outcome, error) {
	t.Helper()
	var got taken
	out, err := f.Collect(context.Background(), testFrom, testTo, got.sink)
	return got, out, err
}

func TestTimesThatAreLaterThanTheClock(t *testing.T) {
	row := func(time any) string { return fmt.Sprintf("%v,shop,Deployment,web,250,\n", time) }
	const good = "Deployment shop/web 0 +0 250"
	for _, test := range []struct {
		name, rows string
		newest     int64 // from testFrom
		future     int64
		example    string
		err        string
	}{
		{"OneBadRecord", row(testFrom) + row(4_000_000_000), 0, 1, `record 2: time "4000000000"`, ""},
		{"OneInMilliseconds", row(testFrom) + row(testFrom*1000), 0, 1,
			fmt.Sprintf(`record 2: time "%d000", which looks like milliseconds`, testFrom), ""},
		{"AnHourLater", row(testFrom) + row(testTo+3600), 7200, 0, "", ""},
		{"MoreThanAnHourLater", row(testFrom) + row(testTo+3601), 0, 1, `record 2: time`, ""},
		{"AllLater", row("2030-01-01T00:00:00Z"), 0, 0, "",
			`all 1 records are later than now, where seconds since 1970 are expected: record 1: time "2030-01-01T00:00:00Z"`},
		{"Milliseconds", row(testFrom*1000) + row(testFrom*1000), 0, 0, "", "all 2 records are later than now"},
		{"Microseconds", row(testFrom * 1e6), 0, 0, "", "which looks like microseconds"},
		{"Nanoseconds", row(testFrom * 1e9), 0, 0, "", "which looks like nanoseconds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := fileOf(t, "use.csv", fileHead+test.rows)
			newest, err := f.Newest()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			got, out, readErr := f.collect(t)
			if err := errors.Join(err, readErr); err != nil || newest != testFrom+test.newest ||
				!slices.Equal(got, taken{good}) {
				t.Errorf("the newest is +%d, samples %q, %v", newest-testFrom, got, err)
			}
			if out.Dropped[Future] != test.future || !strings.HasPrefix(out.Examples[Future], test.example) {
				t.Errorf("dropped %v, such as %q; want %d, %q", out.Dropped, out.Examples, test.future, test.example)
			}
		})
	}
}

// A file of an old trace is judged by its own newest time; the first hour of all is none that can count.
func TestOldTraces(t *testing.T) {
	f := fileOf(t, "use.csv", fileHead+"0,shop,Deployment,web,1,\n7200,shop,Deployment,web,2,\n")
	if newest, err := f.Newest(); newest != 7200 || err != nil {
		t.Errorf("the newest is %d, %v", newest, err)
	}
	var got taken
	out, err := f.Collect(context.Background(), -600_000, 7201, got.sink)
	if err != nil || len(got) != 1 || out.Dropped[OutsideWindow] != 1 {
		t.Errorf("%q, dropped %v, %v", got, out.Dropped, err)
	}
}

func TestFormsOfTimes(t *testing.T) {
	for value, want := range map[string]int64{"1795003200": 0, "1795003200.5": 0, "1795003201e0": 1, "1.7950032e9": 0,
		"2026-11-18T12:00:01Z": 1, "2026-11-18T17:30:02+05:30": 2, "2026-11-18 12:00:03": 3, "2026-11-18 12:00:04.25": 4,
		"2026-11-18 12:00:05+00:00": 5, "2026-11-18T12:00:06": 6, "2026-11-18 13:00:07+01": 7} {
		if got, err := timeOf(value); err != nil || got != testFrom+want {
			t.Errorf("%s is +%d, %v; want +%d", value, got-testFrom, err, want)
		}
	}
	for _, value := range []string{"", "noon", "NaN", "Inf", "1e300", "18.11.2026", "2026-11-18"} {
		if got, err := timeOf(value); err == nil {
			t.Errorf("%s is %d", value, got)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, test := range []struct {
		text string
		of   profile.Resource
		want int64
		why  Reason
	}{
		{"250m", profile.CPU, 250, ""}, {"0.25", profile.CPU, 1, ""}, {"1500000n", profile.CPU, 2, ""},
		{"7u", profile.CPU, 1, ""},
		{"-250m", profile.CPU, 0, Negative}, {"2k", profile.CPU, 0, Unreadable}, {"1Gi", profile.CPU, 0, Unreadable},
		{"1Gi", profile.Memory, 1 << 30, ""}, {"128M", profile.Memory, 128_000_000, ""}, {"1500m", profile.Memory, 2, ""},
		{"9E", profile.Memory, 0, Absurd}, {"1,5", profile.Memory, 0, Unreadable}, {"many", profile.Memory, 0, Unreadable},
		{"NaN", profile.CPU, 0, NotFinite}, {"1e999", profile.CPU, 0, NotFinite},
	} {
		if got, why := amountIn(test.text, test.of); got != test.want || why != test.why {
			t.Errorf("%s of %d is %d, %q; want %d, %q", test.text, test.of, got, why, test.want, test.why)
		}
	}
}

func TestWhatIsLeftOutHasAnExample(t *testing.T) {
	f := fileOf(t, "use.csv", fileHead+"1795003200,shop,Deployment,web,250,many\n"+
		"1795003200,shop,Deployment,web,nan,\x1b[2J\n")
	got, out, err := f.collect(t)
	if want := map[Reason]int64{Unreadable: 2, NotFinite: 1}; err != nil || len(got) != 1 ||
		!maps.Equal(out.Dropped, want) {
		t.Errorf("samples %q, dropped %v, %v", got, out.Dropped, err)
	}
	want := map[Reason]string{Unreadable: `record 1: memory_bytes "many"`, NotFinite: `record 2: cpu_milli "nan"`}
	if !maps.Equal(out.Examples, want) {
		t.Errorf("examples %q, want %q", out.Examples, want)
	}
}

func TestFormsOfFiles(t *testing.T) {
	const plain = fileHead + "1795003200,shop,Deployment,web,250,\n"
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(plain)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write([]byte(plain))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ content, err string }{
		"plain.csv": {plain, ""}, "mark.csv": {"\ufeff" + plain, ""}, "utf16.csv": {utf16, ""},
		"zipped.csv.gz":  {zipped.String(), ""},
		"semicolons.csv": {strings.ReplaceAll(plain, ",", ";"), ""}, "tabs.tsv": {strings.ReplaceAll(plain, ",", "\t"), ""},
		"bars.csv":        {strings.ReplaceAll(plain, ",", "|"), "separated by commas, semicolons or tabs"},
		"empty.csv":       {"", "it is empty"},
		"twice.csv":       {strings.Replace(plain, "memory_bytes", "cpu_milli", 1), `two columns "cpu_milli"`},
		"use.parquet.gz":  {zipped.String(), "unzip it first"},
		"nothing.parquet": {"", "nothing.parquet"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := fileOf(t, name, test.content).collect(t)
			if test.err == "" && (err != nil || !slices.Equal(got, taken{"Deployment shop/web 0 +0 250"})) {
				t.Errorf("samples %q, %v", got, err)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%v, want %q", err, test.err)
			}
		})
	}
}

func TestAJobOfACronJobIsOfTheCronJob(t *testing.T) {
	got, _, err := fileOf(t, "use.csv", fileHead+"1795003200,shop,Job,report-29384756,250,\n"+
		"1795003200,shop,Job,once,1,\n").collect(t)
	if want := (taken{"CronJob shop/report 0 +0 250", "Job shop/once 0 +0 1"}); err != nil || !slices.Equal(got, want) {
		t.Errorf("samples %q, %v", got, err)
	}
}

// A pipe is read twice, as a file is.
func TestStandardInputAndPipes(t *testing.T) {
	const content = fileHead + "1795003200,shop,Deployment,web,250,\n"
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := out.WriteString(content); err != nil {
		t.Fatal(err)
	}
	out.Close()
	for path, stdin := range map[string]string{"-": content, fmt.Sprintf("/dev/fd/%d", in.Fd()): ""} {
		f, err := OpenFile(path, strings.NewReader(stdin), time.Unix(testTo, 0))
		if err != nil {
			t.Fatal(err)
		}
		newest, err := f.Newest()
		got, _, readErr := f.collect(t)
		if err := errors.Join(err, readErr); err != nil || newest != testFrom || len(got) != 1 {
			t.Errorf("%s: the newest is of %d, samples %q, %v", path, newest, got, err)
		}
	}
	f, err := OpenFile("-", strings.NewReader(fileHead+"x"), time.Unix(testTo, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Newest(); err == nil || !strings.HasPrefix(err.Error(), "standard input: ") {
		t.Error(err)
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none"), nil, time.Time{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	const records = 200_000
	f := fileOf(t, "use.csv", fileHead+strings.Repeat("1795003200,shop,Deployment,web,250,1000\n", records))
	most, count := uint64(0), 0
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out, err := f.Collect(context.Background(), testFrom, testTo,
		func(profile.Workload, profile.Resource, int64, int64) bool {
			if count++; count%100_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
			return true
		})
	if err != nil || out.Samples != 2*records {
		t.Fatalf("%d samples, %v", out.Samples, err)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes more for %d samples", grown, out.Samples)
	}
}

// parquetOf returns what a Parquet file of one row gives.
func parquetOf[T any](t *testing.T, row T) (taken, Outcome, error) {
	t.Helper()
	var content bytes.Buffer
	if err := parquet.Write(&content, []T{row}); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, "use.data", content.String()).collect(t) // Parquet is recognized without its suffix
}

func TestTypesOfParquet(t *testing.T) {
	type names struct {
		Namespace string `parquet:"namespace"`
		Kind      string `parquet:"kind"`
		Name      string `parquet:"name"`
	}
	type double struct {
		names
		Time float64 `parquet:"time"`
		CPU  float32 `parquet:"cpu_milli"`
	}
	type decimal struct {
		names
		Time int64 `parquet:"time"`
		CPU  int64 `parquet:"cpu_milli,decimal(2:18)"`
	}
	type wide struct {
		names
		Time int64    `parquet:"time"`
		CPU  [16]byte `parquet:"cpu_milli,decimal(3:38)"`
	}
	type nanoseconds struct {
		names
		Time time.Time `parquet:"time,timestamp(nanosecond)"`
		CPU  string    `parquet:"cpu_milli"`
	}
	type list struct {
		names
		Time int64   `parquet:"time"`
		CPU  []int64 `parquet:"cpu_milli"`
	}
	type date struct {
		names
		Time int32 `parquet:"time,date"`
		CPU  int64 `parquet:"cpu_milli"`
	}
	type flag struct {
		names
		Time int64 `parquet:"time"`
		CPU  bool  `parquet:"cpu_milli"`
	}
	type stamped struct {
		names
		Time int64     `parquet:"time"`
		CPU  time.Time `parquet:"cpu_milli,timestamp"`
	}
	web := names{"shop", "Deployment", "web"}
	var digits, negative [16]byte
	digits[14], digits[15] = 0x01, 0x00 // 256 thousandths
	for i := range negative {
		negative[i] = 0xff // -1 thousandth
	}
	check := func(name string, want taken, dropped Reason, says string, got taken, out Outcome, err error) {
		t.Helper()
		switch {
		case says != "":
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: samples %q, %v; want %q", name, got, err, says)
			}
		case err != nil || !slices.Equal(got, want) || dropped != "" && out.Dropped[dropped] != 1:
			t.Errorf("%s: samples %q, dropped %v, %v; want %q", name, got, out.Dropped, err, want)
		}
	}
	one := func(amount int) taken { return taken{fmt.Sprintf("Deployment shop/web 0 +0 %d", amount)} }
	got, out, err := parquetOf(t, double{web, float64(testFrom) + 0.75, 250.5})
	check("DoubleTime", one(251), "", "", got, out, err)
	got, out, err = parquetOf(t, double{web, math.NaN(), 1})
	check("NaNTime", nil, "", `time: "NaN"`, got, out, err)
	got, out, err = parquetOf(t, decimal{web, testFrom, 25_050})
	check("Decimal", one(251), "", "", got, out, err)
	got, out, err = parquetOf(t, wide{web, testFrom, digits})
	check("WideDecimal", one(1), "", "", got, out, err)
	got, out, err = parquetOf(t, wide{web, testFrom, negative})
	check("NegativeDecimal", nil, Negative, "", got, out, err)
	got, out, err = parquetOf(t, nanoseconds{web, time.Unix(testFrom, 5), "250m"})
	check("Nanoseconds", one(250), "", "", got, out, err)
	got, out, err = parquetOf(t, decimal{web, testFrom * 1e9, 1})
	check("IntegersInNanoseconds", nil, Future, "", got, out, err)
	got, out, err = parquetOf(t, list{web, testFrom, []int64{1, 2}})
	check("Repeated", nil, "", "column cpu_milli: it is repeated", got, out, err)
	got, out, err = parquetOf(t, date{web, 20_000, 1})
	check("Date", nil, "", "column time: it is a DATE", got, out, err)
	got, out, err = parquetOf(t, flag{web, testFrom, true})
	check("Boolean", nil, "", "column cpu_milli: it is of type BOOLEAN", got, out, err)
	got, out, err = parquetOf(t, stamped{web, testFrom, time.Unix(1, 0)})
	check("StampOfAnAmount", nil, "", "column cpu_milli: it is a TIMESTAMP", got, out, err)
}
