-- Claims that take, of one plan and with a record each: the shorter way for nearly every
-- call. KEYS: the records. ARGV: lo hi adj margin and the plan's numbers, packed as doubles since each
-- argument costs as much as a third of a claim; the plan's text; of each claim its cost. Where scripts
-- may not ask for the time adj is no number. Before this file the caller sets kind, make, judge and patience. Reply: raw,
-- now, and of each claim 1 admitted or 0 refused with the two or three words that its state had, or
-- of a rolling window when all is free again, in use, wait, instant; or -1: its record is of another
-- plan or version or none at all, and nothing was done; or -5: outside of the calendar windows.

local raw, now, margin, text = 0, 0, 0, ARGV[2]
local p
do
  local v = {struct.unpack('<' .. string.rep('d', #ARGV[1] / 8), ARGV[1])}
  raw, now = clock(v[1], v[2], v[3] == v[3] and v[3] or '-')
  margin = v[4]
  local numbers = {}
  for i = 5, #ARGV[1] / 8 do numbers[i - 4] = v[i] end
  p = make(numbers)
end
p.text, p.kind, p.first = text, kind, byte(text) == 117

local from = kind == 's' and 71 or kind == 'f' and 54 or 37
local to = from + #text
local three = kind == 's' and 0 or nil
local s = {}
local out, n = {raw, now}, 2

-- load fills in s, and reports whether the record is of this plan.
local function load(r)
  s.at, s.a, s.b, s.ring, s.dirty = 0, 0, three, nil, false
  if not r then return true end
  if type(r) ~= 'string' or byte(r) ~= 49 or sub(r, from, to - 1) ~= text then return false end
  if #r >= to then
    if kind ~= 'l' or byte(r, to) ~= 10 then return false end
    s.ring = sub(r, to + 1)
    if #s.ring ~= 8 * (sub(r, 20, 35) + 0) then return false end
  end
  s.at, s.a = sub(r, 3, 18) + 0, sub(r, 20, 35) + 0
  if three then s.b = sub(r, 37, 52) + 0 end
  return true
end

for i = 1, #KEYS do
  if not load(redis.pcall('GET', KEYS[i])) then
    n = n + 1
    out[n] = -1
  elseif p.cuts and (now < p.cuts[1] or max(now, s.at) >= p.cuts[#p.cuts]) then
    n = n + 1
    out[n] = -5
  else
    local at, a, b = s.at, s.a, s.b
    local ok, inUse, wait, free = judge(p, s, now, ARGV[2 + i] + 0, patience)
    ok = ok and 1 or 0
    if inUse then
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = ok, free, inUse, wait, max(now, s.at)
      n = n + 5
    else
      out[n + 1], out[n + 2], out[n + 3], out[n + 4] = ok, at, a, b
      n = n + (b and 4 or 3)
    end
    if s.dirty then save(KEYS[i], s, p, now, margin) end
  end
end
return out
