-- pacing: the backlog of a bucket; a caller waits until what was admitted before it has
-- drained. Plan: n p full tick.

local function takePacing(p, s, now, cost, patience)
  if cost == 0 then return true end
  local at, a = backlog(p, s, now)
  local need = cost * p.p
  if need > MAX - p.full then return false end
  if a > p.full or drain(p, at, max(now, s.at), a) > patience then return false end
  s.at, s.a, s.dirty = at, a + need, true
  return true
end

local function sparePacing(p, s, now)
  local _, a = backlog(p, s, now)
  if a > p.full then return 0 end
  return floor((p.full - a) / p.p) + 1
end

reset.p = reset.b
