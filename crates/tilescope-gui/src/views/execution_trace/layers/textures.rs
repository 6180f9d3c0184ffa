//! The textures of the scene and of the whole run. Uploading one is expensive, so it is done once
//! per image and not once per frame.

use crate::views::execution_trace::queries::TraceOverviewKey;
use crate::views::execution_trace::scene::TraceScene;
use crate::widgets::background_query::{QueryState, Versioned};
use crate::widgets::split_texture::{SplitImage, SplitTexture};
use egui::Context;

/// The textures of the bars, tiles and links of an IPU.
type LaneTextures = [Option<SplitTexture>; 3];

/// The textures on the graphics card.
#[derive(Default)]
pub(crate) struct TraceTextures {
    /// The version of the scene, and the textures of its IPUs.
    lanes: Option<(u64, Vec<LaneTextures>)>,
    /// The texture of the critical path in that scene.
    path: Option<SplitTexture>,
    overview: Option<(TraceOverviewKey, SplitTexture)>,
}

impl TraceTextures {
    /// Uploads the images of a scene, unless they are uploaded already.
    pub(crate) fn keep_lanes(&mut self, context: &Context, scene: &Versioned<TraceScene>) {
        if self.lanes.as_ref().is_some_and(|(version, _)| *version == scene.version()) {
            return;
        }
        let upload = |image: &SplitImage| SplitTexture::new(context, "lanes", image);
        let mut lanes = Vec::new();
        for ipu in &scene.ipus {
            let links = ipu.links.as_ref().map(|strip| &strip.image);
            let images = [Some(&ipu.image), ipu.tiles.as_ref(), links];
            lanes.push(images.map(|image| image.map(upload)));
        }
        self.lanes = Some((scene.version(), lanes));
        self.path = scene.path.as_ref().map(|path| upload(&path.image));
    }

    /// Uploads the image of the whole run once it matches the request.
    pub(crate) fn keep_overview(
        &mut self,
        context: &Context,
        key: TraceOverviewKey,
        image: &QueryState<SplitImage>,
    ) {
        // Only a fresh image: a stale one under the new key would block the right one.
        let known = self.overview.as_ref().is_some_and(|(drawn, _)| *drawn == key);
        if let QueryState::Fresh(image) = image
            && !known
        {
            self.overview = Some((key, SplitTexture::new(context, "trace overview", image)));
        }
    }

    /// The textures of the bars, tiles and links of an IPU in the scene.
    pub(super) fn of_lanes(&self, index: usize) -> &[Option<SplitTexture>] {
        let lanes = self.lanes.as_ref().and_then(|(_, lanes)| lanes.get(index));
        lanes.map_or(&[], |lanes| lanes.as_slice())
    }

    /// The texture of the critical path.
    pub(super) fn of_path(&self) -> Option<&SplitTexture> {
        self.path.as_ref()
    }

    /// The texture of the whole run.
    pub(crate) fn overview(&self) -> Option<&SplitTexture> {
        self.overview.as_ref().map(|(_, texture)| texture)
    }
}
