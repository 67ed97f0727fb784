import { getOwn } from '../../../workflows/json.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { DRIVE_MAKERS } from './drive.ts'
import { GMAIL_MAKERS } from './gmail.ts'
import { NOTION_MAKERS } from './notion.ts'
import { SHEET_MAKERS } from './sheets.ts'

/**
 * Works out what a step of a connector is: a function of what it is given, and of files. Asked again with the same, it
 * gives the same. Throws a NodeFailure (InvalidInput) for what cannot be.
 */
// biome-ignore lint/suspicious/noExplicitAny: tables are checked by their tests
export type Maker = (given: any, context: NodeContext) => unknown

const MAKERS: Record<string, Maker> = { ...SHEET_MAKERS, ...DRIVE_MAKERS, ...GMAIL_MAKERS, ...NOTION_MAKERS }

export function findMaker(name: string): Maker {
  const found = getOwn<Maker>(MAKERS, name)
  if (!found) throw new Error(`there is no maker "${name}"`)
  return found
}
