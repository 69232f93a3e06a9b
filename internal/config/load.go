package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// Options say how files are read. The zero Options are those of the gateway.
type Options struct {
	IgnoreUnsupported bool // what is not supported is left out and reported as Dropped
	// LookupEnv resolves ${NAME} and ${{NAME}}; nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// ReadFile resolves file: references; nil means the first 64 KiB of the named file.
	ReadFile func(name string) ([]byte, error)
}

// Bounds of a configuration.
const (
	MaxBytes     = tree.MaxBytes
	MaxRoutes    = 10_000
	MaxLimits    = 10_000
	MaxConsumers = 10_000
	MaxNodes     = 1_000 // of one upstream
	maxSecret    = 64 << 10
)

// Load reads a file. The findings are sorted by place; the Config is nil if one of them
// is an Error. The error says that the file could not be read at all.
func Load(name string, o Options) (*Config, []Finding, error) {
	data, err := ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	c, findings := Parse(name, data, o)
	return c, findings, nil
}

// ReadFile reads what Parse wants, and of a file that is too large no more than shows it.
func ReadFile(name string) ([]byte, error) {
	data, err := readBounded(name, MaxBytes+1)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return data, nil
}

// Parse reads the content of a file; the name is for the findings, and says JSON if it
// ends in .json.
func Parse(name string, data []byte, o Options) (*Config, []Finding) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = func(name string) ([]byte, error) { return readBounded(name, maxSecret) }
	}
	r := &tree.Report{File: name, IgnoreUnsupported: o.IgnoreUnsupported}
	c := parse(r, data, o)
	findings := r.Findings()
	if r.Failed() {
		return nil, findings
	}
	c.Findings = findings
	return c, findings
}

func parse(r *tree.Report, data []byte, o Options) *Config {
	doc := tree.Parse(r, data)
	if doc == nil {
		return nil
	}
	b := newBuilder(r, o)
	b.form = b.detect(doc, data)
	if b.form != native {
		tree.Expand(r, doc, o.LookupEnv)
	}
	root, ok := tree.Root(r, doc).Object()
	if !ok {
		return nil
	}
	switch b.form {
	case native:
		b.readNative(root)
	case standalone:
		b.readStandalone(root, data)
	case plugins:
		b.readPlugins(root)
	}
	b.finish(root)
	return b.config
}

// readBounded reads at most limit bytes of a regular file or a pipe.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
