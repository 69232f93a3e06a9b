package gateway

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// quiet logs errors that a client or an upstream can cause at any rate: of each kind at
// most one line a second, with the number of those left out.
type quiet struct {
	to    *slog.Logger
	kinds sync.Map // message to *kind; messages are constants of this package
}

type kind struct {
	silent  atomic.Bool
	dropped atomic.Int64
}

const quietFor = time.Second

func (q *quiet) log(msg string, args ...any) {
	v, _ := q.kinds.LoadOrStore(msg, &kind{})
	k := v.(*kind)
	if k.silent.Swap(true) {
		k.dropped.Add(1)
		return
	}
	time.AfterFunc(quietFor, func() { k.silent.Store(false) })
	if n := k.dropped.Swap(0); n > 0 {
		args = append(args, "left_out", n)
	}
	q.to.Error(msg, args...)
}

// logger is for net/http, which writes lines.
func (q *quiet) logger() *log.Logger { return log.New(quietLines{q}, "", 0) }

type quietLines struct{ q *quiet }

func (l quietLines) Write(line []byte) (int, error) {
	l.q.log("http server", "error", strings.TrimSpace(string(line)))
	return len(line), nil
}
