import type { NodeMapper } from '../mapper.ts'
import { mapGoogleSheets } from './sheets.ts'

/** Nodes of Google's services. */
export const GOOGLE_MAPPERS: Record<string, NodeMapper> = {
  googleSheets: mapGoogleSheets,
}
