import type { WrittenOutput } from '../../../db/executions/records/written.ts'
import type { FailureType } from '../../../workflows/nodes/failures.ts'
import type { LargeNumbers } from '../../../workflows/nodes/fields.ts'
import type {
  ReadableFormat,
  ReadItem,
  WritableFormat,
  WrittenEncoding,
} from '../../../workflows/nodes/formats.ts'
import type { CsvWriting } from './csv.ts'

/**
 * Work on a file for an evaluator process: read what it says, or write one. `data` is the JSON of what is written.
 * Only there the time and memory of parsers can be bounded.
 */
export type FileWork =
  | { read: FileSource & { format: ReadableFormat | 'auto'; options: ReadingOptions } }
  | { write: { format: WritableFormat; data: string; options: WritingOptions } }
  | { pack: { format: 'zip' | 'gzip'; files: { name: string; bytes: Uint8Array }[] } }

export type FileSource = { name: string; mimeType: string; bytes: Uint8Array }

/** What EXTRACT_FROM_FILE may say beside the format: each is for some formats only. */
export type ReadingOptions = {
  encoding?: string | undefined
  delimiter?: string | undefined
  header?: boolean | undefined
  /** Takes quotes where CSV has none. */
  lenient?: boolean | undefined
  largeNumbers?: LargeNumbers | undefined
  /** For XML: all children of an element as a list. */
  order?: boolean | undefined
  /** A sheet's name, or its number from 1. */
  sheet?: string | number | undefined
  /** Cells such as `A1:D20`. */
  range?: string | undefined
  /** The number of the row that has the names, from 1, in the sheet. */
  headerRow?: number | undefined
  dates?: 'text' | 'number' | undefined
  /** Numbers of pages, such as `1-3,7`. */
  pages?: string | undefined
  /** The name of a file in an archive, and what is made of it. */
  entry?: string | undefined
  as?: 'text' | 'file' | undefined
  /** The fields to pick of a page: for each name a CSS selector, or {selector, attribute, all}. */
  fields?: Record<string, unknown> | undefined
  /** The file is read into an item: what it has already, and how. */
  item?: (ReadItem & { base: Record<string, unknown> }) | undefined
}

export type WritingOptions = CsvWriting & {
  bom?: boolean | undefined
  sheet?: string | undefined
  indent?: number | undefined
  encoding?: WrittenEncoding | undefined
  /** Written as SheetJS writes it for n8n: nested keys are columns with dots. */
  sheets?: boolean | undefined
}

/**
 * The result: the output of a file that was read (`text` is its JSON, which is written already if it is large), a file,
 * or a failure of the node. `warnings` are sentences for those who look at the record.
 */
export type FileResult =
  | { text: string; warnings: string[] }
  | { written: WrittenOutput; warnings: string[] }
  | { bytes: Uint8Array; name?: string; warnings: string[] }
  | { unpacked: { name: string; bytes: Uint8Array }[]; warnings: string[] }
  | { fault: FailureType; message: string }

/** What a format's reader gives: the output, or the bytes of a file within the file. */
export type FileReading =
  | { output: unknown }
  | { bytes: Uint8Array; name: string }
  | { unpacked: { name: string; bytes: Uint8Array }[] }

/** Notes a warning for the node's record. */
export type Warn = (message: string) => void
