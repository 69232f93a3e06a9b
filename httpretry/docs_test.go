package httpretry

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/retry"
)

// The page names every reason and the defaults as they are.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../docs/retries.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(b)), " ")
	want := []string{
		"`MaxWait`, 1 min", fmt.Sprintf("`MaxAttempts`, %d", retry.DefaultMaxAttempts), fmt.Sprintf("`MaxBody`, %d KiB", defaultMaxBody>>10),
		fmt.Sprintf("`Backoff` (%v)", retry.DefaultBackoff), fmt.Sprintf("`Percent` of a retry, %d", retry.DefaultPercent),
		fmt.Sprintf("At most `Burst`, %d", retry.DefaultBurst), fmt.Sprintf("`MaxHosts`, %d", retry.DefaultMaxHosts),
	}
	for _, r := range []Reason{Told, Backoff, Final, Unsafe, Body, Attempts, TooLong, Deadline, Spent} {
		want = append(want, fmt.Sprintf("`%s`", r))
	}
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("docs/retries.md does not say %s", w)
		}
	}
	if r, err := (Config{}).rules().Complete(); err != nil || r.MaxWait.Minutes() != 1 || r.Budget.Floor.Seconds() != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
