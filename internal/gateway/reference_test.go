package gateway

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fields lists the paths of the values a type is written with as JSON.
func fields(typ reflect.Type, prefix string, add func(string)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			if inner.Kind() == reflect.Slice {
				name += "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			fields(inner, prefix+name+".", add)
		} else {
			add(prefix + name)
		}
	}
}

// TestReferenceOfLimits compares docs/reference/limits-api.md with the document, both ways.
func TestReferenceOfLimits(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/limits-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, served []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(doc), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			documented = append(documented, strings.Trim(name, "`"))
		}
	}
	fields(reflect.TypeFor[Status](), "", func(name string) { served = append(served, name) })
	slices.Sort(documented)
	slices.Sort(served)
	for _, name := range served {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is not documented", name)
		}
	}
	for i, name := range documented {
		if !slices.Contains(served, name) || i > 0 && documented[i-1] == name {
			t.Errorf("%s is documented and not served, or twice", name)
		}
	}
}
