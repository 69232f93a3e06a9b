package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Bounds of what is read.
const (
	maxFile     = 1 << 20
	maxFiles    = 200 // of one daemon, included ones among them
	maxIncludes = 10  // levels
	maxProblems = 50
)

// host reads the files of a machine below a root.
type host struct{ fs fs.FS }

// inFS is an absolute path as a file system names it.
func inFS(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// read returns a regular file of at most 1 MiB: opening a pipe would wait for somebody to
// write to it.
func (h host) read(name string) (string, error) {
	switch info, err := fs.Stat(h.fs, inFS(name)); {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("not a regular file")
	}
	f, err := h.fs.Open(inFS(name))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("longer than %d bytes", maxFile)
	}
	return string(b), err
}

// text is a small file, trimmed, or nothing.
func (h host) text(name string) string {
	s, err := h.read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

func (h host) exists(name string) bool {
	_, err := fs.Stat(h.fs, inFS(name))
	return err == nil
}

// glob returns absolute paths, sorted.
func (h host) glob(pattern string) []string {
	names, err := fs.Glob(h.fs, inFS(pattern))
	if err != nil {
		return nil
	}
	for i, n := range names {
		names[i] = "/" + n
	}
	return names
}

// merged returns the files of directories that end in suffix, in the order of their names.
// A file hides those of the same name in later directories.
func (h host) merged(dirs []string, suffix string) []string {
	found := map[string]string{}
	for _, dir := range dirs {
		for _, name := range h.glob(path.Join(dir, "*"+suffix)) {
			if base := path.Base(name); found[base] == "" {
				found[base] = name
			}
		}
	}
	var names []string
	for _, base := range slices.Sorted(maps.Keys(found)) {
		names = append(names, found[base])
	}
	return names
}

// directive is a line of a configuration file, split at white space.
type directive struct {
	Place
	words []string
}

// dialect is how the lines of a daemon's files are to be read.
type dialect struct {
	comment func(line string) string // the line without its comment
	// include handles a directive that names other files; it reports false for the others.
	include func(r *reader, d directive, depth int) bool
}

// reader collects the directives of a file and of all that it includes.
type reader struct {
	host       host
	dialect    dialect
	directives []directive
	problems   []string
	files      int
	unread     bool // some of what they say is not known
}

// directives reads a file and all that it includes.
func (h host) directives(name string, d dialect) *reader {
	r := &reader{host: h, dialect: d}
	r.file(name, Place{File: name}, 0)
	return r
}

func (r *reader) problem(p Place, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p.String()+": "+fmt.Sprintf(format, args...))
	}
}

// String is file:line.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// full reports whether another file would be one too many.
func (r *reader) full(depth int) bool { return r.files >= maxFiles || depth > maxIncludes }

func (r *reader) file(name string, from Place, depth int) {
	if r.full(depth) {
		r.unread = r.unread || depth <= maxIncludes // deeper ones go round in a circle
		r.problem(from, "%s is not read: more than %d files or %d levels of them", name, maxFiles, maxIncludes)
		return
	}
	r.files++
	text, err := r.host.read(name)
	if err != nil {
		r.unread = true
		r.problem(from, "%s cannot be read: %v", name, cause(err))
		return
	}
	for i, line := range strings.Split(text, "\n") {
		d := directive{Place{name, i + 1}, strings.Fields(r.dialect.comment(line))}
		if len(d.words) == 0 || r.dialect.include(r, d, depth) {
			continue
		}
		r.directives = append(r.directives, d)
	}
}

// cause is an error without the path of the fake or real root.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// is reports whether the directive has that name; the daemons do not mind the case.
func (d directive) is(name string) bool { return strings.EqualFold(d.words[0], name) }

// option is the word after name, or nothing.
func (d directive) option(name string) string {
	for i, w := range d.words {
		if strings.EqualFold(w, name) && i+1 < len(d.words) {
			return d.words[i+1]
		}
	}
	return ""
}
