import type { NodeMapper } from '../mapper.ts'
import { mapGoogleDrive } from './drive.ts'
import { mapGmail } from './gmail.ts'
import { mapGoogleSheets } from './sheets.ts'

/** Nodes of Google's services. */
export const GOOGLE_MAPPERS: Record<string, NodeMapper> = {
  gmail: mapGmail,
  googleDrive: mapGoogleDrive,
  googleSheets: mapGoogleSheets,
}
