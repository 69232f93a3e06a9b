package twogateways

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/escapement-io/escapement/internal/redisserver"
)

// meter counts the scripts that servers run, over their ends and restarts.
type meter struct {
	servers []*redisserver.Server
	before  calls // of those that ended
}

// calls are scripts that were run: all, and those by which the line is kept.
type calls struct{ scripts, keeping int }

// errNothing is an answer without a word in it.
var errNothing = errors.New("redis answers nothing")

var statLine = regexp.MustCompile(`(?m)^cmdstat_(evalsha|eval|zcard):calls=(\d+)`)

// read is what was run since the first server started.
func (m *meter) read(ctx context.Context) (calls, error) {
	sum := m.before
	for _, s := range m.servers {
		info, err := s.Do(ctx, "INFO", "commandstats")
		if err == nil && len(info) == 0 {
			err = errNothing
		}
		if err != nil {
			return sum, fmt.Errorf("drill: what Redis ran: %w", err)
		}
		c := parseCalls(info[0])
		sum.scripts, sum.keeping = sum.scripts+c.scripts, sum.keeping+c.keeping
	}
	return sum, nil
}

// parseCalls reads what INFO says of commands. The script that keeps the line, and no
// other, counts the members of a sorted set, once.
func parseCalls(info string) (c calls) {
	for _, m := range statLine.FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[2]) // as the pattern has it
		if m[1] == "zcard" {
			c.keeping += n
		} else {
			c.scripts += n
		}
	}
	return c
}

// ending keeps what a server has run before it ends.
func (m *meter) ending(ctx context.Context, s *redisserver.Server) error {
	c, err := (&meter{servers: []*redisserver.Server{s}}).read(ctx)
	m.before.scripts, m.before.keeping = m.before.scripts+c.scripts, m.before.keeping+c.keeping
	return err
}
