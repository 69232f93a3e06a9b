-- One claim that takes, alone: the shorter way for nearly every call. KEYS: the record.
-- ARGV: lo hi adj margin cost, the plan's text and its numbers. Before this file the
-- caller sets make and judge, and kind. Reply: as of a list of one
-- request; or -1: the record is of another plan or version, and
-- nothing was done.

local raw, now = clock(ARGV[1], ARGV[2], ARGV[3])
local cost, text = ARGV[5] + 0, ARGV[6]
local p = make({tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])})
p.text, p.kind, p.first = text, kind, string.byte(text) == 117
if p.cuts and (now < p.cuts[1] or now >= p.cuts[#p.cuts]) then return {raw, now, -5, 0} end

local s = {at = 0, a = 0}
if kind == 's' then s.b = 0 end
local r = redis.call('GET', KEYS[1])
if r then
  local from = kind == 's' and 54 or 37
  local to = from + #text
  if string.byte(r) ~= 49 or string.sub(r, from, to - 1) ~= text or #r >= to and string.byte(r, to) ~= 10 then
    return {raw, now, -1, 0}
  end
  s.at, s.a = string.sub(r, 3, 18) + 0, string.sub(r, 20, 35) + 0
  if kind == 's' then s.b = string.sub(r, 37, 52) + 0 end
  if #r >= to then s.ring = string.sub(r, to + 1) end
end

local at, a, b = s.at, s.a, s.b
local ok, inUse, wait, free = judge(p, s, now, cost, patience)
if s.dirty then save(KEYS[1], s, p, now, ARGV[4] + 0) end
ok = ok and 1 or 0
if inUse then return {raw, now, ok, ok, free, inUse, wait, 0, max(now, s.at)} end
return {raw, now, ok, ok, at, a, b or 0}
