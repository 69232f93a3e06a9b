package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/escapement-io/escapement/internal/config/tree"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// generic is a YAML document as values for JSON.
func generic(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
}

func nativeSamples(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range []string{"testdata/every/native.yaml", "testdata/every/shared.yaml", "../../examples/native.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = data
	}
	return out
}

func TestSchemaAcceptsSamples(t *testing.T) {
	s := compiledSchema(t)
	for name, data := range nativeSamples(t) {
		v, err := generic(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaIsPublished(t *testing.T) {
	published, err := os.ReadFile("../../docs/reference/config.schema.json")
	if err != nil || string(published) != Schema {
		t.Errorf("docs/reference/config.schema.json differs from internal/config/config.schema.json; copy it (%v)", err)
	}
}

// beyondSchema are the faults that a schema cannot see or that are none of the document's
// shape: what needs the whole file, the environment, exact arithmetic or the list of
// variables.
var beyondSchema = []string{
	"admin-same", "burst-too-large", "bypass-bits", "bypass-network", "bypass-unknown-variable", "buckets-on-log", "clock-critical-below", "clock-on-step-times", "clock-webhook-url", "consumers-key-double", "consumers-key-env", "consumers-key-file", "consumers-same-key", "count-hex", "count-octal",
	"headroom-leaves-nothing", "key-consumer-never", "key-not-closed", "key-unknown-variable", "limit-unknown.",
	"listen-port", "per-nanoseconds", "per-zero", "per-millennium", "plugin-count-default", "plugin-group-mismatch", "plugin-key-dollar", "plugin-policy-redis.",
	"plugin-rules-same-key", "plugin-redis-cluster", "plugin-sync-lease-count", "plugin-sync-lease-half", "plugin-sync-window", "plugin-too-large",
	"route-unreachable", "routes-same-", "store-address", "store-credentials-twice", "store-database-with-url", "store-deadline-long", "store-password-env", "store-unknown", "store-url", "store-username-alone", "sync-delayed-bucket", "sync-lease-burst", "sync-lease-pacing", "sync-lease-calendar", "sync-lease-half", "sync-lease-short", "sync-not-below-period",
	"upstream-hash-variable", "upstream-node-address", "upstream-unknown", "upstream-weights-zero", "uri-dots.", "uri-parameter", "uri-slashes", "host-ipv6-port", "host-unicode", "host-with-port", "zone-local", "zone-unknown",
}

// TestSchemaSeesFaults gives every fixture of the native form to the schema: it refuses
// those whose shape is at fault, and accepts what is only advised against.
func TestSchemaSeesFaults(t *testing.T) {
	s := compiledSchema(t)
	files, _ := filepath.Glob("testdata/faults/*.yaml")
	refused := 0
	for _, name := range files {
		base := filepath.Base(name)
		if strings.HasPrefix(base, "apisix-") || strings.HasPrefix(base, "yaml-") || base == "limit-duplicate-key.yaml" {
			continue // another form, or nothing that would reach a schema
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		expected, body := splitFixture(data)
		wrong := slices.ContainsFunc(expected, func(line string) bool { return strings.Contains(line, ": error: ") })
		hidden := slices.ContainsFunc(beyondSchema, func(p string) bool { return strings.HasPrefix(base, p) })
		v, err := generic(body)
		if err != nil {
			// Infinity and NaN are not in JSON at all.
			if wrong {
				refused++
				continue
			}
			t.Fatalf("%s: %v", base, err)
		}
		err = s.Validate(v)
		if (err != nil) != (wrong && !hidden) {
			t.Errorf("%s: wrong: %v, beyond the schema: %v, the schema says: %v", base, wrong, hidden, err)
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("the schema refuses %d of %d fixtures", refused, len(files))
}

// TestSchemaAgrees changes one value of the samples at a time. Whatever Parse accepts the
// schema accepts.
func TestSchemaAgrees(t *testing.T) {
	s := compiledSchema(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	values := []any{nil, true, -1, 0, 1, 2.5, 429, int64(1 << 53), "", "x", "10s", "epoch", "day", "remote_addr", "$uri", "127.0.0.1:80", "10.0.0.0/8", []any{}, []any{"x"}, map[string]any{}, map[string]any{"x": 1}}
	for name, data := range nativeSamples(t) {
		tried, accepted := 0, 0
		for i, slot := range slots(t, data) {
			for range 4 {
				v, err := generic(data)
				if err != nil {
					t.Fatal(err)
				}
				what := slot.change(v, rng, values)
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				tried++
				_, findings := Parse("a.json", text, Options{LookupEnv: environmentOf(nil)})
				if slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error }) {
					continue
				}
				accepted++
				again, _ := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
				if err := s.Validate(again); err != nil {
					t.Errorf("%s, slot %d, %s: accepted, and the schema says %v\nseed %d", name, i, what, err, seed)
				}
			}
		}
		if accepted == 0 || accepted == tried {
			t.Errorf("%s: %d of %d changes accepted: nothing was compared", name, accepted, tried)
		}
	}
}

// slot is a place in a document: the keys and indexes that lead there.
type slot []any

func slots(t *testing.T, data []byte) []slot {
	v, err := generic(data)
	if err != nil {
		t.Fatal(err)
	}
	var out []slot
	var walk func(v any, at slot)
	walk = func(v any, at slot) {
		if len(at) > 0 {
			out = append(out, slices.Clone(at))
		}
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], append(at, key))
			}
		case []any:
			for i := range v {
				walk(v[i], append(at, i))
			}
		}
	}
	walk(v, nil)
	return out
}

// change replaces the value in the slot, removes it, or adds a key beside it.
func (s slot) change(v any, rng *rand.Rand, values []any) string {
	for _, step := range s[:len(s)-1] {
		switch k := step.(type) {
		case string:
			v = v.(map[string]any)[k]
		case int:
			v = v.([]any)[k]
		}
	}
	value := values[rng.IntN(len(values))]
	switch k := s[len(s)-1].(type) {
	case string:
		m := v.(map[string]any)
		switch rng.IntN(6) {
		case 0:
			delete(m, k)
			return fmt.Sprintf("%v removed", s)
		case 1:
			m["added"] = value
			return fmt.Sprintf("added = %v beside %v", value, s)
		}
		m[k] = value
	case int:
		v.([]any)[k] = value
	}
	return fmt.Sprintf("%v = %v", s, value)
}

// TestKeysAreDocumented compares the keys that Parse asks for with the schema and with
// the tables of docs/reference/config.md.
func TestKeysAreDocumented(t *testing.T) {
	decoder := map[string]bool{}
	files, _ := filepath.Glob("testdata/every/*")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := &tree.Report{File: name}
		parse(r, data, Options{LookupEnv: environmentOf(nil)})
		for _, key := range r.Keys() {
			decoder[sharedKey(key)] = true
		}
		for _, f := range r.Findings() {
			if f.Severity == Error {
				t.Errorf("%v", f)
			}
		}
	}
	documented := documentedKeys(t)
	compareKeys(t, "asked for by the decoder", decoder, "documented", documented)

	var doc map[string]any
	if err := json.Unmarshal([]byte(Schema), &doc); err != nil {
		t.Fatal(err)
	}
	inSchema := map[string]bool{}
	schemaKeys(doc, doc, "", inSchema)
	native := map[string]bool{}
	for key := range documented {
		if !strings.HasPrefix(key, "consumers[]") && !strings.HasPrefix(key, "plugin_metadata") {
			native[key] = true
		}
	}
	compareKeys(t, "in the schema", inSchema, "documented for the native form", native)
}

func compareKeys(t *testing.T, aName string, a map[string]bool, bName string, b map[string]bool) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if !b[key] {
			t.Errorf("%s is %s and not %s", key, aName, bName)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if !a[key] {
			t.Errorf("%s is %s and not %s", key, bName, aName)
		}
	}
}

// sharedKey is the one path under which keys that several places share are documented.
func sharedKey(key string) string {
	for from, to := range map[string]string{
		"routes[].upstream.": "upstreams.*.", "upstreams[].": "upstreams.*.",
		"routes[].plugins.limit-count-advanced.": "routes[].plugins.limit-count.",
	} {
		if rest, ok := strings.CutPrefix(key, from); ok {
			key = to + rest
		}
	}
	if strings.HasSuffix(key, "key-auth._meta") || strings.HasSuffix(key, "key-auth._meta.disable") {
		return strings.Replace(key, "key-auth", "limit-count", 1)
	}
	return key
}

// documentedKeys reads the tables: a comment in front of each gives the path that the
// first column continues.
func documentedKeys(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/config.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	prefix, inTable := "", false
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "<!-- keys:"); ok {
			prefix, inTable = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "-->")), true
		} else if strings.HasPrefix(line, "#") {
			inTable = false
		}
		if cell, ok := strings.CutPrefix(line, "| `"); ok && inTable {
			key, _, _ := strings.Cut(cell, "`")
			keys[prefix+key] = true
		}
	}
	return keys
}

// schemaKeys collects the properties of a schema as paths.
func schemaKeys(root, s map[string]any, path string, out map[string]bool) {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		schemaKeys(root, root["$defs"].(map[string]any)[name].(map[string]any), path, out)
	}
	props, _ := s["properties"].(map[string]any)
	for key, v := range props {
		at := key
		if path != "" {
			at = path + "." + key
		}
		out[sharedKey(at)] = true
		if m, ok := v.(map[string]any); ok {
			schemaKeys(root, m, at, out)
		}
	}
	if m, ok := s["additionalProperties"].(map[string]any); ok {
		schemaKeys(root, m, path+".*", out)
	}
	if m, ok := s["items"].(map[string]any); ok {
		schemaKeys(root, m, path+"[]", out)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[word].([]any)
		for _, item := range list {
			if m, ok := item.(map[string]any); ok {
				schemaKeys(root, m, path, out)
			}
		}
	}
}
