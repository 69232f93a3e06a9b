package redisstore

import (
	"context"
	"fmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

var _ escapement.Collector = (*Store)(nil)

// Collect takes reports of what was admitted, on the record that exact claims of the limit
// use as well; see escapement.Collector. Up to 64 reports ride in one script, on a cluster
// those of one slot. Reports are counted by the newest plan of their limit's name, if
// that is a fixed_window or a sliding_window.
func (s *Store) Collect(ctx context.Context, reports []escapement.Report, answers []escapement.Reported) {
	n := min(len(reports), len(answers))
	list := s.newSyncList(collectScript, func(*wire) []string { return nil })
	for i := range n {
		r := &reports[i]
		answers[i] = escapement.Reported{}
		w, err := s.collecting(r)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			answers[i].Err = err
			continue
		}
		c := list.add(i, w, key(s.cfg.Prefix, w.plan.Limit().Name, r.Key))
		c.body = appendFlush(c.body, w, &r.Flush)
	}
	list.run(ctx, func(c *syncCall) {
		c.each(func(i int, r *reader) {
			answers[i] = escapement.Reported{Outcome: escapement.Decided, Flushed: readFlushed(r)}
		}, func(i int, o escapement.Outcome, err error) {
			answers[i] = escapement.Reported{Outcome: o, Err: err}
		})
	})
}

// collecting is the plan that a report is counted by.
func (s *Store) collecting(r *escapement.Report) (*wire, error) {
	f := &r.Flush
	numbers := []int64{f.Instance, f.Number, int64(f.Interval)}
	total := int64(0)
	for _, part := range f.Parts {
		numbers = append(numbers, int64(part.Window), part.Units)
		if total <= algo.MaxInt {
			total += max(0, part.Units)
		}
	}
	if err := checkSync(r.Plan, r.Key, len(f.Parts), append(numbers, total)...); err != nil {
		return nil, err
	}
	name := r.Plan.Limit().Name
	if f.Instance <= 0 || f.Number <= 0 {
		return nil, fmt.Errorf("%w: limit %s: flush %d of instance %d; both are positive", escapement.ErrRequest, name, f.Number, f.Instance)
	}
	if l := r.Plan.Limit(); l.Sync <= 0 || l.SyncMode != escapement.SyncDelayed {
		return nil, fmt.Errorf("%w: limit %s is not reported later; set Sync and SyncDelayed", escapement.ErrRequest, name)
	}
	w, _ := s.ruling(r.Plan)
	if w.kind != 'f' && w.kind != 's' {
		return nil, fmt.Errorf("%w: limit %s has no windows by now; drop what is to be reported of it", escapement.ErrRequest, name)
	}
	return w, nil
}

// appendFlush sends with each part the end of its window, which of a calendar the script
// does not know.
func appendFlush(args []string, w *wire, f *algo.Flush) []string {
	args = appendInts(args, f.Instance, f.Number, int64(f.Interval), int64(len(f.Parts)))
	for _, part := range f.Parts {
		end := part.Window + algo.Store(w.plan.Core().Numbers().Per)
		if w.calendar != nil {
			_, end = w.calendar.Around(part.Window)
		}
		args = appendInts(args, int64(part.Window), int64(end), part.Units)
	}
	return args
}

func readFlushed(r *reader) algo.Flushed {
	return algo.Flushed{At: algo.Store(r.next()), Window: algo.Store(r.next()), Rest: algo.Span(r.next()),
		Used: r.next(), Remaining: r.next(), Late: r.next()}
}
