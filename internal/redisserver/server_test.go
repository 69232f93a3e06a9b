package redisserver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/escapement-io/escapement/internal/redisserver"
)

func TestServerKeepsItsFilesOverARestart(t *testing.T) {
	s, err := redisserver.Start(t.Context(), redisserver.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := s.Do(t.Context(), "SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Do(t.Context(), "MGET", "k", "none"); err != nil || len(got) != 2 || got[0] != "v" {
		t.Errorf("%q %v", got, err)
	}
	s.Kill()
	if _, err := s.Do(t.Context(), "PING"); err == nil {
		t.Error("it answers after it was ended")
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	if _, err := redisserver.Start(t.Context(), redisserver.Options{Args: []string{"--no-such-option", "1"}}); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", "")
	if _, err := redisserver.Start(t.Context(), redisserver.Options{}); !errors.Is(err, redisserver.ErrMissing) || !strings.Contains(err.Error(), "install") {
		t.Errorf("%v", err)
	}
}
