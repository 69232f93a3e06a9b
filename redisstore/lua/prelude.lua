-- The second implementation of package algo: the same names in the same order, in
-- integers below 2^53. Only what admits changes a state; states are written when every
-- claim of the call is judged, so an error means that nothing was charged.

local MAX, INSTANT = 9007199254740991, 4503599627370495
local floor, max, min = math.floor, math.max, math.min
local call, format, sub, byte = redis.call, string.format, string.sub, string.byte

-- clock is the only reading of the store's clock, once a call: the raw instant, and the
-- instant on the deployment's line, held between the bounds that the caller vouches for.
-- A caller whose scripts may not ask for the time sends no adjustment, and is dated by
-- its own lower bound.
local function clock(lo, hi, adj)
  if adj == '-' then return 0, lo + 0 end
  local t = call('TIME')
  local raw = t[1] * 1000000 + t[2]
  return raw, max(lo + 0, min(hi + 0, raw + adj))
end

local function ceilDiv(a, b)
  local q = floor(a / b)
  if q * b < a then q = q + 1 end
  return q
end

-- reset is how long until the state is as new, in microseconds, per algorithm.
local reset = {}

-- head is the first line of a record. Windows, whose own instant is their start, say
-- besides when they were written.
local function head(s, p, now)
  if s.b then return format('1 %016d %016d %016d %016d %s', s.at, s.a, s.b, now, p.text) end
  if p.kind == 'f' then return format('1 %016d %016d %016d %s', s.at, s.a, now, p.text) end
  return format('1 %016d %016d %s', s.at, s.a, p.text)
end

-- save writes a state under its plan. Expiry only collects what is as good as new.
local function save(key, s, p, now, margin)
  if now < s.at then now = s.at end
  local left, text = reset[p.kind](p, s, now), head(s, p, now)
  if left < 0 then left = 0 elseif left > INSTANT then left = INSTANT end
  if s.ring then text = text .. '\n' .. s.ring end
  call('SET', key, text, 'PX', format('%d', left / 1000 + 1 + margin))
end
