import { DefaultFailureConverter } from '@temporalio/common'

/** Puts messages and stacks of failures into payloads, so that the codec seals them too. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
