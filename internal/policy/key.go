package policy

import (
	"crypto/sha256"
	"strconv"
)

// Bounds of keys.
const (
	MaxParts = 8   // templates of one key
	MaxKey   = 512 // bytes of a key as stored; longer ones are hashed
)

// hashed begins a key that stands for a longer one. Keys that happen to begin with it
// are hashed too, so a short key never equals a hash.
const hashed = 0xff

// Key is what a limit counts by: one or several templates, joined so that different
// values never make the same key. No parts: one counter for all requests.
type Key struct {
	Parts []Template
}

// Eval is the key of one request, at most MaxKey bytes. It is false if the key has
// variables and none of them gave a value.
func (k Key) Eval(v Vars) (string, bool) {
	if len(k.Parts) == 1 && len(k.Parts[0].parts) == 1 {
		s, ok := k.Parts[0].parts[0].eval(v)
		if len(s) <= MaxKey && (s == "" || s[0] != hashed) {
			return s, ok
		}
	}
	buf, ok := k.Append(make([]byte, 0, 64), v)
	return string(buf), ok
}

// Append is Eval into a buffer. The value of each of several parts is preceded by its
// length, so that ("a", "bc") and ("ab", "c") stay apart.
func (k Key) Append(dst []byte, v Vars) ([]byte, bool) {
	start := len(dst)
	var ok bool
	if len(k.Parts) == 1 {
		dst, ok = k.Parts[0].Append(dst, v)
	} else {
		dst, ok = k.join(dst, v)
	}
	if raw := dst[start:]; len(raw) > MaxKey || len(raw) > 0 && raw[0] == hashed {
		sum := sha256.Sum256(raw)
		dst = append(append(dst[:start], hashed), sum[:]...)
	}
	return dst, ok
}

// join appends the parts, each as its length, a colon and its value.
func (k Key) join(dst []byte, v Vars) ([]byte, bool) {
	variables, resolved := false, false
	for i := range k.Parts {
		t := &k.Parts[i]
		value, ok := t.Eval(v)
		if !t.constant() {
			variables = true
			resolved = resolved || ok
		}
		dst = strconv.AppendInt(dst, int64(len(value)), 10)
		dst = append(dst, ':')
		dst = append(dst, value...)
	}
	return dst, !variables || resolved
}

// Variables are the names of the variables of all parts.
func (k Key) Variables() []string {
	var names []string
	for _, t := range k.Parts {
		names = append(names, t.Variables()...)
	}
	return names
}

// String lists the parts as they are written in configuration.
func (k Key) String() string {
	s := "["
	for i, t := range k.Parts {
		if i > 0 {
			s += ", "
		}
		if len(t.parts) == 1 && t.parts[0].variable && !t.parts[0].hasDef {
			s += t.parts[0].text
		} else {
			s += strconv.Quote(t.String())
		}
	}
	return s + "]"
}
