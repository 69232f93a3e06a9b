package cases

import (
	"os"
	"testing"
)

func bank(t *testing.T) []Case {
	t.Helper()
	f, err := os.Open("../../../testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cs, err := Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// TestBank runs the bank on the in-memory store: nothing fails, and what is skipped needs
// what one process does not have.
func TestBank(t *testing.T) {
	cs := bank(t)
	if len(cs) != 109 {
		t.Fatalf("%d cases, want 109", len(cs))
	}
	r, err := Run(t.Context(), cs, Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Failed {
		t.Error(r.Failed[i].String())
	}
	for _, s := range r.Skipped {
		t.Log(s.ID, s.Reason)
	}
	t.Log(r.Passed, len(r.Skipped))
}
