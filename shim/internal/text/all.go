package text

import (
	"reflect"
	"strings"
)

// BoundAll bounds each text that a value holds, at any depth, to so many bytes, and each list of texts to so many
// entries. `of` is a pointer. Line breaks become semicolons. Keys of maps stay.
func BoundAll(of any, most, entries int) { boundAll(reflect.ValueOf(of), most, entries) }

func boundAll(v reflect.Value, most, entries int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			boundAll(v.Elem(), most, entries)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				boundAll(v.Field(i), most, entries)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String && v.Len() > entries {
			v.Set(v.Slice(0, entries).Convert(v.Type()))
		}
		for i := range v.Len() {
			boundAll(v.Index(i), most, entries)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.String {
			return
		}
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.ValueOf(line(v.MapIndex(key).String(), most)).Convert(v.Type().Elem()))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(line(v.String(), most))
		}
	}
}

// line is Bound for a text of several lines.
func line(text string, most int) string {
	if len(text) <= most && plain(text) {
		return text
	}
	return Bound(strings.ReplaceAll(text[:min(len(text), most+1)], "\n", "; "), most)
}
