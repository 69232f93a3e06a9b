package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/config/limitcount"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// form is one of the shapes a file can have.
type form uint8

const (
	native     form = iota // listen, stores, limits, routes
	standalone             // an APISIX standalone file, ended by #END
	plugins                // nothing but the configuration of plugins, to be checked
)

// builder reads one file into a Config.
type builder struct {
	report  *tree.Report
	options Options
	form    form
	config  *Config

	stores    map[string]*Store // native ones by name; nil where the store has mistakes
	limits    map[string]*Limit // native ones by name; nil where the limit has mistakes
	names     map[string]string // names of limits in force to the path of their origin
	upstreams map[string]*Upstream
	groups    map[string]*group
	metadata  map[string]limitcount.Metadata
	used      map[*Limit]bool
	sources   map[*Limit]source
	consumers consumerSources
	matchers  []matcher
}

// source is where a limit's parts stand, for findings that are known only later.
type source struct {
	limit tree.Value
	key   tree.Value
}

func newBuilder(r *tree.Report, o Options) *builder {
	return &builder{
		report: r, options: o, config: &Config{Listen: defaultListen, Admin: defaultAdmin},
		stores: map[string]*Store{}, limits: map[string]*Limit{}, names: map[string]string{},
		upstreams: map[string]*Upstream{}, groups: map[string]*group{},
		used: map[*Limit]bool{}, sources: map[*Limit]source{},
	}
}

// detect tells the form of a document by the keys that only one form has.
func (b *builder) detect(doc *tree.Node, data []byte) form {
	for _, key := range []string{"listen", "admin", "tls", "trusted_proxies", "clock", "stores", "limits"} {
		if doc.Field(key) != nil {
			return native
		}
	}
	if endsInMark(data) || doc.Field("plugin_metadata") != nil {
		return standalone
	}
	for _, key := range []string{"consumers", "upstreams", "services", "global_rules", "plugin_configs"} {
		if n := doc.Field(key); n != nil && n.Kind == tree.List {
			return standalone
		}
	}
	for _, f := range doc.Fields {
		if !knownPlugin(f.Key) {
			return native
		}
	}
	if len(doc.Fields) > 0 {
		return plugins
	}
	return native
}

// endMark ends an APISIX standalone file; without it the file may be half written.
const endMark = "#END"

func endsInMark(data []byte) bool {
	lines := strings.Split(strings.TrimRight(string(data), " \t\r\n"), "\n")
	return strings.TrimSpace(lines[len(lines)-1]) == endMark
}

// compileProblems reports each problem of compiling a limit at the key it belongs to.
// rename maps fields of escapement.Limit to keys of the form at hand; keys in known are
// reported already.
func compileProblems(err error, o *tree.Object, name tree.Value, rename map[string]string, known map[string]bool) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			compileProblems(e, o, name, rename, known)
		}
		return
	}
	var problem *algo.LimitError
	switch {
	case err == nil:
	case !errors.As(err, &problem):
		o.Fail(err.Error(), "change the limit")
	case problem.Field == "name":
		name.Fail(problem.Problem, problem.Hint)
	default:
		key := problem.Field
		if to, ok := rename[key]; ok {
			key = to
		}
		if !known[key] {
			o.At(key).Fail(problem.Problem, problem.Hint)
		}
	}
}

// finish checks what needs the whole file.
func (b *builder) finish(root *tree.Object) {
	b.collectLimits(root)
	b.checkUnused()
	b.checkConsumers()
	b.checkReach()
	if b.form == native && !root.Has("limits") && !root.Has("routes") {
		root.Fail("neither limits nor routes: there is nothing to do", "write at least one of them")
	}
}

// collectLimits puts the limits of the routes' plugins behind the native ones.
func (b *builder) collectLimits(root *tree.Object) {
	seen := map[*Limit]bool{}
	for _, r := range b.config.Routes {
		for _, l := range r.Limits {
			if l.Compatible && !seen[l] {
				seen[l] = true
				b.config.Limits = append(b.config.Limits, l)
			}
		}
	}
	if n := len(b.config.Limits); n > MaxLimits {
		root.Fail(fmt.Sprintf("%d limits", n), fmt.Sprintf("use at most %d; plugins of one group share theirs", MaxLimits))
	}
}
