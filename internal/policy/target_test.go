package policy

import "testing"

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"": "/", "*": "/*", "/": "/", "/a/b": "/a/b", "/a/b/": "/a/b/", "//a": "/a", "/a//b": "/a/b", "/a/./b": "/a/b",
		"/a/../b": "/b", "/a/b/..": "/a/", "/a/b/.": "/a/b/", "/../../a": "/a", "/..": "/", "/.": "/", "/.a/..b/c..": "/.a/..b/c..",
		"/a/...": "/a/...", "/x/..//api/y": "/api/y", "/a//": "/a/",
	} {
		if got := CleanPath(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHasDots(t *testing.T) {
	for in, want := range map[string]bool{
		"": false, "/": false, "/a//b": false, "/.a/b..": false, "/...": false,
		"/.": true, "/a/..": true, "/a/./b": true, "//..//x": true, "/.a/../b": true,
	} {
		if got := HasDots(in); got != want {
			t.Errorf("%q: got %v", in, got)
		}
	}
}

func TestHostName(t *testing.T) {
	for in, want := range map[string]string{
		"A.Example": "a.example", "a:80": "a", "a.": "a", "[::1]:80": "::1", "[::1]": "::1", "": "", "a:b:c": "a:b:c",
	} {
		if got := HostName(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
