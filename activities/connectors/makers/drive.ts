import type { Maker } from './maker.ts'

/** What the actions of Google Drive work out. */
export const DRIVE_MAKERS: Record<string, Maker> = { driveFormat: chooseFormat }

/** The type as which a document of Google's own is saved; null for files, which are taken as they are. */
function chooseFormat({ mimeType, ...formats }: { mimeType?: string } & Record<string, string>): object {
  const kind = /^application\/vnd\.google-apps\.(.*)$/.exec(mimeType ?? '')?.[1]
  if (kind === undefined) return { mimeType: null }
  return { mimeType: Object.hasOwn(formats, kind) ? formats[kind] : formats.drawing }
}
