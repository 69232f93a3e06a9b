package cases

import (
	"errors"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/internal/redistest"
)

// TestBankOnRedis runs the bank on a real server. What is skipped is about faults and
// sentences that tests of redisstore and of the gateway check one by one, and about a
// store that is not shared.
func TestBankOnRedis(t *testing.T) {
	b, err := StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	r, err := Run(t.Context(), bank(t), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Failed {
		t.Error(r.Failed[i].String())
	}
	var skipped []string
	for _, s := range r.Skipped {
		skipped = append(skipped, s.ID)
	}
	const want = "B59 B60 B61 B62 B90 B95 B97 B122 B124 B125"
	if got := strings.Join(skipped, " "); got != want {
		t.Errorf("skipped %s\nwant    %s", got, want)
	}
}

// TestRedisOfSomebodyElse: nothing is left on the server that was used.
func TestRedisOfSomebodyElse(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	b, err := UseRedis(t.Context(), "redis://"+srv.Addr()+"/0")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), bank(t)[:20], b, nil)
	if err != nil || len(r.Failed) > 0 || r.Passed < 10 {
		t.Errorf("%+v %v", r, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if keys := srv.Must(t, "DBSIZE"); keys != "0" {
		t.Errorf("%s keys are left", keys)
	}
	if users := srv.Must(t, "ACL", "USERS"); users != "default" {
		t.Errorf("users %s are left", users)
	}
	srv.Must(t, "ACL", "SETUSER", "default", "-acl")
	if _, err := UseRedis(t.Context(), "redis://"+srv.Addr()); err == nil || !strings.Contains(err.Error(), "ACL SETUSER") {
		t.Errorf("%v", err)
	}
	if _, err := UseRedis(t.Context(), "http://a"); err == nil || strings.Contains(err.Error(), "http") {
		t.Errorf("%v", err)
	}
}

func TestNoServerInPath(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := StartRedis(t.Context()); !errors.Is(err, redisserver.ErrMissing) {
		t.Errorf("%v", err)
	}
}
