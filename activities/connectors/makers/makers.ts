import { getOwn } from '../../../workflows/json.ts'
import { CALENDAR_MAKERS } from './calendar.ts'
import { DOCS_MAKERS } from './docs.ts'
import { DRIVE_MAKERS } from './drive.ts'
import { GITHUB_MAKERS } from './github.ts'
import { GMAIL_MAKERS } from './gmail.ts'
import type { Maker } from './maker.ts'
import { NOTION_MAKERS } from './notion.ts'
import { SHEET_MAKERS } from './sheets.ts'

const MAKERS: Record<string, Maker> = {
  ...SHEET_MAKERS,
  ...DRIVE_MAKERS,
  ...CALENDAR_MAKERS,
  ...DOCS_MAKERS,
  ...GITHUB_MAKERS,
  ...GMAIL_MAKERS,
  ...NOTION_MAKERS,
}

export function findMaker(name: string): Maker {
  const found = getOwn<Maker>(MAKERS, name)
  if (!found) throw new Error(`there is no maker "${name}"`)
  return found
}
