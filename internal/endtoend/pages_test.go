package endtoend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/redistest"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// ofTheMachine are commands that ask what this machine may not have.
var ofTheMachine = regexp.MustCompile(`^(journalctl|chronyc) `)

// shell runs a script with the command under test in the path. It may take 30 s.
func shell(t *testing.T, dir, script string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Every command that docs/operating.md and the runbooks tell somebody to run works, on a
// gateway whose clock was stepped just now. What asks the daemons of the machine is only
// read by the shell.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	clk := newSkewed(ctx, t)
	redis := redistest.Start(t, redistest.Options{})
	conf := fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s/0", instances: 2}}
limits:
  login: {algorithm: token_bucket, count: 20, per: 1s, key: []}
  shared: {algorithm: token_bucket, count: 100, per: 1s, key: [], store: main}
routes: [{uri: "/*", limits: [login, shared], upstream: {nodes: {"UPSTREAM": 1}}}]
`, redis.Addr())
	u := newUpstream(t)
	stepped, quiet := start(t, u, conf, clk), start(t, u, conf, nil)
	offer(t, stepped.url, 60, time.Second, "alice")
	if err := clk.step(ctx, -320*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	here, there := strings.TrimPrefix(stepped.admin(ctx, t), "http://"), strings.TrimPrefix(quiet.admin(ctx, t), "http://")
	until(ctx, t, "the step is noticed", func() bool { return strings.Contains(stepped.log(), "clock step") })
	as := strings.NewReplacer("127.0.0.1:9090", here, "10.0.0.1:9090", here, "10.0.0.2:9090", there, "10.0.0.3:9090", there,
		"127.0.0.1:6379", redis.Addr(), "gateway.yaml", stepped.file, "--watch 10s", "--watch 500ms")
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	ran := map[string]bool{} // pages share commands
	for _, page := range append(pages, "../../docs/operating.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		body, _, _ := strings.Cut(string(text), "\n## Rehearse it\n")
		for _, block := range shellBlock.FindAllStringSubmatch(body, -1) {
			for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
				command := as.Replace(line)
				if ran[command] {
					continue
				}
				ran[command] = true
				if ofTheMachine.MatchString(command) {
					command = "sh -n -c '" + command + "'"
				}
				out, err := shell(t, t.TempDir(), command)
				var exit *exec.ExitError
				finding := strings.HasPrefix(command, "escapement doctor") && errors.As(err, &exit) && exit.ExitCode() == 1
				if err != nil && !finding {
					t.Errorf("%s: %s: %v\n%s", page, line, err, out)
				}
			}
		}
	}
	t.Logf("%d commands of %d pages", len(ran), len(pages)+1)
	if len(ran) < 30 {
		t.Error("want more commands than that")
	}
}

// What docs/operating.md says of a rehearsal works as one script, ports aside.
func TestRehearsalOfThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## Rehearse it\n")
	block := shellBlock.FindStringSubmatch(rest)
	if block == nil {
		t.Fatal("docs/operating.md has no rehearsal")
	}
	dir := t.TempDir()
	tools := filepath.Join(dir, "tools", "skewrun")
	if err := os.CopyFS(tools, os.DirFS("../../tools/skewrun")); err != nil {
		t.Fatal(err)
	}
	admin := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	conf := "admin: " + admin + limited("count: 10, per: 1s")
	conf = strings.ReplaceAll(conf, "UPSTREAM", strings.TrimPrefix(newUpstream(t).URL, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "gateway.yaml"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := shell(t, dir, "set -e\ntrap 'kill $!; wait' EXIT\n"+strings.ReplaceAll(block[1], "127.0.0.1:9090", admin))
	for _, want := range []string{`escapement_clock_step_total{direction="backward"} 1`, `"kind":"step"`, "direction=backward"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q", want)
		}
	}
	if err != nil || t.Failed() {
		log, _ := os.ReadFile(filepath.Join(dir, "gateway.log"))
		t.Errorf("%v\n%s\n%s", err, out, log)
	}
}
