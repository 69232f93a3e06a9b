package docs

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/fallback"
	"github.com/escapement-io/escapement/grpcretry"
	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/httpretry"
	"github.com/escapement-io/escapement/lease"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/redisstore"
)

// The Go of the README, compiled and not run: TestSnippets compares it with the page.
func _(handler http.Handler) {
	store := memstore.New()
	defer store.Close()

	limiter, err := escapement.New(store, escapement.Limit{
		Name:      "per-client",
		Algorithm: escapement.RollingWindow, // at most 100 in every span of 10 s, wherever it begins
		Rate:      escapement.Rate{Count: 100, Per: 10 * time.Second},
	})
	if err != nil {
		log.Fatal(err) // every problem of the limit, each with what to do
	}
	perClient := httplimit.New(limiter, httplimit.RemoteAddr(httplimit.Clients{}))
	http.ListenAndServe("127.0.0.1:8080", perClient(handler))
}

// The Go of docs/retries.md, likewise.
func _() {
	retrying, err := httpretry.New(nil, httpretry.Config{}) // nil: http.DefaultTransport
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: retrying, Timeout: 30 * time.Second}
	_ = client
}

func _(target string, creds grpc.DialOption) error {
	retrying, err := grpcretry.Unary(grpcretry.Config{})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithChainUnaryInterceptor(retrying), creds)
	_ = conn
	return err
}

// The Go of docs/sync-and-leases.md, likewise.
func _() *escapement.Limiter {
	red, err := redisstore.Open(redisstore.Config{Addrs: []string{"127.0.0.1:6379"}, Logger: slog.Default()})
	if err != nil {
		log.Fatal(err) // what is missing; a server that is away, too
	}
	defer red.Close()
	instances := func() int { n, _ := red.Instances(); return n } // as the store counts them; 0: not known

	leases := lease.NewStore(red, red, lease.Options{Instances: instances})
	defer leases.Close(context.Background()) // gives back what is held
	local := memstore.New()
	defer local.Close()
	store := fallback.New(leases, fallback.NewPolicy(local, instances)) // answers by OnFailure

	limiter, err := escapement.New(store, escapement.Limit{
		Name:      "per-client",
		Algorithm: escapement.FixedWindow,
		Rate:      escapement.Rate{Count: 1000, Per: 10 * time.Second},
		Sync:      200 * time.Millisecond,
		OnFailure: escapement.LocalShare,
	})
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}

// TestOptionsAreTold holds what is said of the options of leases and reports to
// their fields: they are aliases, of which go doc shows no fields.
func TestOptionsAreTold(t *testing.T) {
	for _, file := range []string{"../lease/store.go", "../batch/store.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for f := range reflect.TypeFor[lease.Options]().Fields() {
			if !regexp.MustCompile(`(?m)^//\t` + f.Name + " +" + regexp.QuoteMeta(f.Type.String()) + " ").Match(text) {
				t.Errorf("%s does not say what %s %v of Options is", file, f.Name, f.Type)
			}
		}
	}
}

// TestSnippets holds the Go of the README and of the pages here to code that compiles:
// each block stands in a test file of this folder.
func TestSnippets(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	compiled := compiledText(t)
	blocks := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			if !strings.Contains(compiled, flush(m[1])) {
				t.Errorf("%s: this block stands in no test file that is compiled; copy it into docs/snippets_test.go\n%s", page, m[1])
			}
		}
	}
	if blocks == 0 {
		t.Error("no page has a block of Go, so nothing was compared")
	}
}

// compiledText is the text of the test files here, line by line without indentation.
func compiledText(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(flush(string(text)))
	}
	return all.String()
}

// flush takes the indentation from each line.
func flush(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
}
