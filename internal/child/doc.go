// Package child is about processes that this one starts: a group of their own that ends
// with this process, signals to all of it, and the last of what they wrote.
package child
