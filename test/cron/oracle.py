"""Reads plans [cron, zone, from, to, change] in epoch seconds, a JSON list on standard input; writes the due times of each.
A change is [at, before, after] with offsets; where Python's time zones do not know it, the answer is null."""

import json
import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from cronsim import CronSim


def offset_at(zone, at):
    return datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset().total_seconds()


def list_due(cron, zone, start, end, change):
    if change:
        at, before, after = change
        if offset_at(zone, at - 1) != before or offset_at(zone, at) != after:
            return None
    found = []
    # The iterator gives times after its start.
    for due in CronSim(cron, datetime.fromtimestamp(start - 60, ZoneInfo(zone))):
        at = int(due.astimezone(timezone.utc).timestamp())
        if at >= end:
            return found
        if at >= start:
            found.append(at)


json.dump([list_due(*plan) for plan in json.load(sys.stdin)], sys.stdout)
