import { parseCron } from '../../../workflows/cron/cron.ts'
import { type CronPlan, walkInstants } from '../../../workflows/cron/instants.ts'

/** When a report is due: a cron expression that is valid, in an IANA time zone. */
export type SlotPlan = { schedule: string; timezone: string }

const DAY_MS = 86_400_000

/** The longest period that a report is about. */
export const MOST_PERIOD_MS = 31 * DAY_MS

/** The first slot after a time; null if no slot follows within 40 years. */
export function findNextSlot(plan: SlotPlan, after: Date): Date | null {
  const { value } = walkInstants(readPlan(plan), after.getTime() + 1).next()
  return value ? new Date(value) : null
}

/** The last slot before a time, but not more than 31 days before it; null without such a slot. */
export function findSlotBefore(plan: SlotPlan, before: Date): Date | null {
  const { value } = walkInstants(readPlan(plan), before.getTime(), true).next()
  return value && before.getTime() - value <= MOST_PERIOD_MS ? new Date(value) : null
}

/** The slots from `first` to `last`, the latest `most` of them, the earliest first. */
export function listSlots(plan: SlotPlan, first: Date, last: Date, most: number): Date[] {
  const slots: Date[] = []
  for (const slot of walkInstants(readPlan(plan), last.getTime() + 1, true)) {
    if (slot < first.getTime() || slots.length === most) break
    slots.unshift(new Date(slot))
  }
  return slots
}

function readPlan({ schedule, timezone }: SlotPlan): CronPlan {
  return { cron: parseCron(schedule).cron, timezone }
}
