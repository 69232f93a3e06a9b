package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/escapement-io/escapement/internal/config"
)

// Load reads the configuration anew. It is nil if a finding is an error.
type Load func() (*config.Config, []config.Finding)

// settle is how long files must be left alone before they are read, and mostResets how
// often that wait begins again at most.
const (
	settle     = 100 * time.Millisecond
	mostResets = 20
)

// lookEvery is how often files are looked at without an event: a folder further up may be
// a link that is switched, a folder may come back after it was removed, and some file
// systems tell nothing.
const lookEvery = 2 * time.Second

// Watch reloads on SIGHUP and when the content of one of the files changes, or that of
// the listener's certificate, until ctx ends. Their directories are watched, so that a
// file may be replaced, or be a link that is switched, as editors and Kubernetes do; what
// brings no event is noticed within seconds. A configuration with errors changes nothing.
func (g *Gateway) Watch(ctx context.Context, paths []string, load Load) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var events chan fsnotify.Event
	var faults chan error
	w, err := fsnotify.NewWatcher()
	if err != nil {
		g.logger.Warn("files are not watched, only looked at", "every", lookEvery, "error", err)
	} else {
		defer func() { _ = w.Close() }() // nobody listens any more
		events, faults = w.Events, w.Errors
		g.watchFolders(w, g.watched(paths))
	}
	// What changed between the first reading and the watch would be missed.
	seen := fingerprint(g.watched(paths))
	if c, _ := load(); c != nil && !reflect.DeepEqual(c, g.current.Load().config) {
		_ = g.Reload(c) // logged and counted there
	}
	quietly := time.NewTimer(settle)
	quietly.Stop()
	defer quietly.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	resets := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			seen = fingerprint(g.watched(paths))
			g.reloadFrom(load)
		case <-events:
			if resets++; resets <= mostResets {
				quietly.Reset(settle)
			}
		case err := <-faults:
			g.logger.Debug("events of files were lost; the files are looked at", "error", err)
			quietly.Reset(settle)
		case <-look.C:
			if fingerprint(g.watched(paths)) != seen {
				quietly.Reset(settle)
			}
		case <-quietly.C:
			resets = 0
			// Taken before the files are read: what changes meanwhile is another event.
			if now := fingerprint(g.watched(paths)); now != seen {
				seen = now
				g.reloadFrom(load)
			}
			if w != nil {
				g.watchFolders(w, g.watched(paths))
			}
		}
	}
}

// watched adds the files that the configuration in force names.
func (g *Gateway) watched(paths []string) []string {
	if t := g.current.Load().config.TLS; t != nil {
		paths = append(paths[:len(paths):len(paths)], t.Cert, t.Key)
	}
	return paths
}

// watchFolders watches where the paths are and where they lead to.
func (g *Gateway) watchFolders(w *fsnotify.Watcher, paths []string) {
	for _, p := range paths {
		folders := []string{filepath.Dir(p)}
		if real, err := filepath.EvalSymlinks(p); err == nil {
			folders = append(folders, filepath.Dir(real))
		}
		for _, f := range folders {
			if err := w.Add(f); err != nil {
				g.quiet.log("a folder is not watched, only looked at", "folder", f, "every", lookEvery, "error", err)
			}
		}
	}
}

func (g *Gateway) reloadFrom(load Load) {
	c, findings := load()
	if c != nil {
		_ = g.Reload(c) // logged and counted there
		return
	}
	var errs []error
	for _, f := range findings {
		if f.Severity == config.Error && len(errs) < maxFindings {
			errs = append(errs, fmt.Errorf("%s:%d:%d: %s: %s", f.File, f.Line, f.Col, f.Path, f.Problem))
		}
	}
	g.refuseReload(errors.Join(errs...))
}

// maxFindings is how many findings one log line shows; escapement check shows all.
const maxFindings = 10

// fingerprint tells contents apart. A file that cannot be read is a content of its own.
func fingerprint(paths []string) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			fmt.Fprintf(h, "\x00%v", err)
			continue
		}
		fmt.Fprint(h, "\x01")
		n, err := io.Copy(h, io.LimitReader(f, maxWatched))
		fmt.Fprintf(h, "\x02%d%v", n, err)
		_ = f.Close() // only read
	}
	return [sha256.Size]byte(h.Sum(nil))
}

const maxWatched = 8 << 20
