package twogateways

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
	"github.com/escapement-io/escapement/internal/drill/bench"
	"github.com/escapement-io/escapement/internal/redisserver"
)

// lapse is what a failover forgot, as the drill saw it from outside.
type lapse struct {
	known, spent record    // before the replica was cut off, and when the primary ended
	cut, back    algo.Mono // when the replica was cut off at the earliest, and promoted at the latest
}

// failing are the two events of a failover: the replica is cut off, and after the lag the
// primary ends.
func (s *stage) failing() []event {
	f := &s.o.Faults
	l := &lapse{}
	return []event{
		{f.Failover - f.Lag, "replica cut off", func(ctx context.Context) error { return s.cutOff(ctx, l) }},
		{f.Failover, "primary killed", func(ctx context.Context) error { return s.promote(ctx, l) }},
	}
}

// cutOff lets the replica log in as nobody from now on, so that it stays where it is. The
// record is read before, so it is nothing that the replica has not heard of.
func (s *stage) cutOff(ctx context.Context, l *lapse) error {
	l.cut = clock.Mono()
	var err error
	if l.known, err = s.record(ctx, s.replica.First); err != nil {
		return err
	}
	for _, command := range []string{"CONFIG SET masteruser nobody", "CONFIG SET masterauth nothing", "CLIENT KILL TYPE master"} {
		if _, err := s.replica.Second.Do(ctx, strings.Fields(command)...); err != nil {
			return fmt.Errorf("drill: %s: %w", command, err)
		}
	}
	return nil
}

// promote ends the primary, whose scripts are stopped before so that what it has on record
// is all that it ever said, and waits until the replica took its place.
func (s *stage) promote(ctx context.Context, l *lapse) error {
	first, second := s.replica.First, s.replica.Second
	if _, err := first.Do(ctx, "ACL", "SETUSER", "default", "-evalsha", "-eval"); err != nil {
		return fmt.Errorf("drill: stopping scripts: %w", err)
	}
	var err error
	l.spent, err = s.record(ctx, first)
	err = errors.Join(err, s.meter.ending(ctx, first))
	first.Kill()
	s.meter.servers = []*redisserver.Server{second}
	if err != nil {
		return err
	}
	s.failover = l
	err = bench.Await(ctx, "the replica is promoted", func() bool {
		info, err := second.Do(ctx, "INFO", "replication")
		return err == nil && strings.Contains(info[0], "role:master")
	})
	l.back = clock.Mono()
	return err
}

// record is what is charged to the open window of the limit, and to the next one in
// advance.
type record struct {
	start       algo.Store
	units, next int64
	any         bool
}

// recordKey is where the record of the limit is: of one key, which is empty.
const recordKey = "esc:{0:}" + limitName

// record reads the record of the limit. Of a rolling window it is of no use.
func (s *stage) record(ctx context.Context, server *redisserver.Server) (record, error) {
	got, err := server.Do(ctx, "GET", recordKey)
	if err == nil && len(got) == 0 {
		err = errNothing
	}
	if err != nil {
		return record{}, fmt.Errorf("drill: the record of the limit: %w", err)
	}
	if s.rolls() {
		return record{}, nil
	}
	r, ok := parseRecord(got[0])
	if !ok {
		return record{}, fmt.Errorf("drill: the record of the limit is %q, which is none of a window", got[0])
	}
	return r, nil
}

var recordLine = regexp.MustCompile(`^1 (\d+) (\d+) [^\n]*[fus] \d`)

// What is lent of a window stands in the record's second line: an M and ten words, the last
// of which is what is lent of the next window.
const (
	lentMark  = "M"
	lentWords = 10
)

// parseRecord reads the record of a fixed or a sliding window.
func parseRecord(text string) (r record, ok bool) {
	m := recordLine.FindStringSubmatch(text)
	if m == nil {
		return r, false
	}
	start, err := strconv.ParseInt(m[1], 10, 64)
	units, err2 := strconv.ParseInt(m[2], 10, 64)
	r = record{start: algo.Store(start), units: units, any: true}
	_, rest, _ := strings.Cut(text, "\n")
	if lent, found := strings.CutPrefix(rest, lentMark); found {
		if len(lent) < 8*lentWords {
			return r, false
		}
		r.next = int64(binary.LittleEndian.Uint64([]byte(lent[8*(lentWords-1):])))
	}
	return r, err == nil && err2 == nil
}

// lost are the units that were charged between two readings of a record.
func lost(known, spent record, per algo.Span) int64 {
	if spent.start == known.start {
		return max(0, spent.units-known.units) + max(0, spent.next-known.next)
	}
	if spent.start == known.start+algo.Store(per) {
		return max(0, spent.units-known.next) + spent.next
	}
	return spent.units + spent.next
}

func (s *stage) rolls() bool { return s.o.algorithm() == windows["rolling"] }

// judge says what was lost. Of a rolling window it is what was admitted from the cut to the
// promotion: nothing that the primary handed out in between was used at another time.
func (l *lapse) judge(s *stage, h *history) *Failover {
	f := &Failover{Lag: float64(s.o.Faults.Lag) / float64(time.Millisecond), Lost: int(lost(l.known, l.spent, h.per))}
	if s.rolls() {
		f.Lost = h.between(h.begin+algo.Store((l.cut-s.begin)/1000), h.begin+algo.Store((l.back-s.begin)/1000))
	}
	return f
}

// between counts the admissions from an instant to another one.
func (h *history) between(from, to algo.Store) (n int) {
	for _, s := range h.admitted {
		if s.At >= from && s.At <= to {
			n++
		}
	}
	return n
}
