package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A setting is one value of the configuration.
type setting struct {
	path  string // its key with those of its sections, as in scaleUp.pricing.spotFactor
	flag  string
	tag   reflect.StructTag
	value reflect.Value // can be set
}

// settingsOf returns the settings of a section, at any depth, in the order in which they are declared.
func settingsOf(section any, path string) (all []setting) {
	v := reflect.ValueOf(section).Elem()
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		key, _, _ := strings.Cut(tag.Get("json"), ",") // empty: the keys of the section are those of the outer one
		switch _, isDuration := field.Interface().(Duration); {
		case field.Type() == reflect.TypeFor[metav1.TypeMeta]():
		case field.Kind() != reflect.Struct || isDuration:
			flag := tag.Get("flag")
			if flag == "" {
				flag = kebab(key)
			}
			all = append(all, setting{path: path + key, flag: flag, tag: tag, value: field})
		case key == "":
			all = append(all, settingsOf(field.Addr().Interface(), path)...)
		default:
			all = append(all, settingsOf(field.Addr().Interface(), path+key+".")...)
		}
	}
	return all
}

var capital = regexp.MustCompile("[A-Z]")

// kebab makes "scan-interval" of "scanInterval".
func kebab(key string) string { return strings.ToLower(capital.ReplaceAllString(key, "-$0")) }

// durations is the range of a duration without the tag.
const durations = "0s:1000h"

// checkRanges compares each setting with its tag `range`.
func checkRanges(c *Configuration) error {
	for _, s := range settingsOf(c, "") {
		allowed := s.tag.Get("range")
		if s.value.Type() == reflect.TypeFor[Duration]() && allowed == "" {
			allowed = durations
		}
		if allowed == "" {
			continue
		}
		if err := inRange(s.path, s.value.Interface(), allowed); err != nil {
			return err
		}
	}
	return nil
}

// inRange returns an error unless a number, a duration or the length of a list is in the range LOW:HIGH. Either end may
// be left out, and "<" before HIGH excludes it. NaN and infinity are in no range.
func inRange(path string, value any, allowed string) error {
	var number float64
	switch v := value.(type) {
	case int:
		number = float64(v)
	case float64:
		number = v
	case Duration:
		number, value = float64(v.Duration), v.Duration
	case []string:
		number, value = float64(len(v)), fmt.Sprintf("number of entries %d", len(v))
	default:
		panic(fmt.Sprintf("%s: a %T has no range", path, value))
	}
	low, high, _ := strings.Cut(allowed, ":")
	highest, excluded := strings.CutPrefix(high, "<")
	least, most := limit(low, -math.MaxFloat64), limit(highest, math.MaxFloat64)
	if number >= least && number <= most && !(excluded && number == most) {
		return nil
	}
	words := "between " + low + " and " + strings.Replace(high, "<", "below ", 1)
	switch {
	case high == "":
		words = "at least " + low
	case low == "":
		words = "at most " + high
	}
	return fmt.Errorf("%s: %v must be %s", path, value, words)
}

// limit reads an end of a range; one that is left out is the given one.
func limit(text string, without float64) float64 {
	if text == "" {
		return without
	}
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return number
}

// oneOf returns an error unless a setting is one of these words.
func oneOf(path, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("%s: %q must be one of %s", path, word, strings.Join(words, ", "))
}

// readEach reads the entries of a setting. An error of `read` names the entry.
func readEach[T any](path string, entries []string, read func(string) (T, error)) (all []T, err error) {
	for _, entry := range entries {
		one, err := read(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// asFlag returns an error that begins with the path of one of these settings with the name of its flag in the place of
// the path. `flagOf` returns the flag that a setting was given by; empty: by none.
func asFlag(settings []setting, err error, flagOf func(setting) string) error {
	for _, s := range settings {
		rest, is := strings.CutPrefix(err.Error(), s.path)
		if flag := flagOf(s); is && flag != "" && strings.IndexAny(rest, ": [") == 0 {
			return fmt.Errorf("--%s%s", flag, rest)
		}
	}
	return err
}

// AsFlag does the same for a section whose settings have all been given by flags; see AddFlagsTo.
func AsFlag(section any, err error) error {
	return asFlag(settingsOf(section, ""), err, func(s setting) string { return s.flag })
}

// once returns an error if two entries of a setting have the same key.
func once[T any, K comparable](path string, entries []T, keyOf func(T) K) error {
	seen := map[K]bool{}
	for _, entry := range entries {
		key := keyOf(entry)
		if seen[key] {
			return fmt.Errorf("%s: %v occurs twice", path, key)
		}
		seen[key] = true
	}
	return nil
}
